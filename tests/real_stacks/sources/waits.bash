# Waits of a shell: for a child deep within functions, for the output of one, for a line, and for a pipeline.
descend() {
  if [ "$1" -gt 0 ]; then
    descend $(($1 - 1))
    return
  fi
  sleep 600
}
(descend 6; true) &
(text=$(sleep 600); echo "$text") &
(while read -r line; do echo "$line"; done < <(sleep 600)) &
(sleep 600 | sort | uniq -c) &
(trap 'true' USR1; wait; sleep 600; true) &
(mapfile -t lines < <(sleep 600); echo "${#lines[@]}") &
(select word in one two; do echo "$word"; done < <(sleep 600)) &
eval 'wait; true'
