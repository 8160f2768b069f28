# Sourced by the stories. Each recording NAME leaves /out/NAME.truth, .err, .code and, where it was written, .json.

# record NAME ARGUMENTS... : one recording; the truth is what the command prints.
record() {
  local name=$1 code
  shift
  dwell record -o "/tmp/$name.dwell" "$@" >"/out/$name.truth" 2>"/out/$name.err"
  code=$?
  echo "$code" >"/out/$name.code"
  echo "guest: [$(cut -d" " -f1 /proc/uptime) s] record $name: exit $code $(head -c 300 "/out/$name.err" | tr '\n' ' ')"
  if [ -e "/tmp/$name.dwell" ]; then
    dwell report "/tmp/$name.dwell" --json "/out/$name.json" >/dev/null 2>>"/out/$name.err" ||
      echo "guest: report $name failed: $(tail -n 1 "/out/$name.err")"
  fi
  rm -f "/tmp/$name.dwell"
}
