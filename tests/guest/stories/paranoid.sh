# Debian's levels of perf_event_paranoid against sets of capabilities: what counts is what the kernel lets one do.
# By its path: busybox has a setpriv of its own.
files=+sys_ptrace,+dac_override,+dac_read_search
for level in -1 2 3 4; do
  echo "$level" >/proc/sys/kernel/perf_event_paranoid
  for kept in "+bpf,+perfmon,$files" "+bpf,$files" "+perfmon,$files" "$files"; do
    name="$level.$(echo "$kept" | sed "s/,*$files//; s/[+]//g; s/,/-/")"
    /usr/bin/setpriv --bounding-set "-all,$kept" --inh-caps -all \
      dwell record -o "/tmp/$name.dwell" -- nap --us 5000 --waits 20 >"/out/$name.truth" 2>"/out/$name.err"
    echo $? >"/out/$name.code"
    if [ -e "/tmp/$name.dwell" ]; then dwell report "/tmp/$name.dwell" --json "/out/$name.json" >/dev/null; fi
    rm -f "/tmp/$name.dwell"
  done
done
