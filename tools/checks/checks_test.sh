#!/usr/bin/env bash
# The checks find what they are for: each is run on a small tree with one fault in it, and must fail and name it.
# usage: checks_test.sh (from anywhere)
set -u
checks=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d) || exit 1
trap 'rm -rf "$tree"' EXIT
bad=0

# fresh: an empty git tree with one sound file per folder that the checks look at.
fresh() {
  rm -rf "$tree" && mkdir -p "$tree"/{abi,bpf,src/base,src/ring,src/export,src/collect,build} && cd "$tree" || exit 1
  git init -q . && printf '%s\n' 'Apache License' >LICENSE
  cp "$checks/../../.clang-format" .
  printf '/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */\n' | tee abi/a.h >bpf/b.c
  printf '#pragma once\n' >src/base/sound.h
  printf '[]\n' >build/compile_commands.json
}

# finds WHAT WORD COMMAND...: the command must fail and print WORD; before the fault it must have passed.
finds() {
  local what=$1 word=$2 said
  shift 2
  git add -A
  if said=$("$@" 2>&1); then
    echo "not found: $what"; bad=1
  elif ! grep -qF -- "$word" <<<"$said"; then
    echo "found without naming it ($word): $what"; printf '%s\n' "$said"; bad=1
  else
    echo "found: $what"
  fi
}
passes() {
  git add -A
  "$@" >/dev/null 2>&1 || { echo "a sound tree does not pass: $*"; "$@"; bad=1; }
}

fresh
for check in layers.py format.sh licence.sh paths.sh scripts.py; do
  [ "$check" = scripts.py ] && printf '#!/bin/sh\ntrue\n' >ok.sh && chmod +x ok.sh
  passes "$checks/$check" .
done
passes "$checks/headers_alone.py" . build

fresh; printf '#include "collect/x.h"\n' >src/base/up.h
finds "a folder that includes one below it" src/base/up.h "$checks/layers.py" .
fresh; printf '#include <sys/mman.h>\n' >src/ring/reader.cc
finds "a syscall header in ring/" src/ring/reader.cc "$checks/layers.py" .
fresh; printf '#include "collect/x.h"\n' >src/export/json.cc
finds "export/ that sees more than the profile" "sees only" "$checks/layers.py" .
fresh; printf '#include "off_cpu.skel.h"\n' >src/collect/drain.cc
finds "a skeleton outside probe/" skeleton "$checks/layers.py" .
fresh; mkdir src/utils && printf '\n' >src/utils/x.h
finds "a folder that is in no layer" src/utils/x.h "$checks/layers.py" .
fresh; printf '#include "base/b.h"\n' >src/base/a.h; printf '#include "base/a.h"\n' >src/base/b.h
finds "an include cycle" cycle "$checks/layers.py" .
fresh; printf '#pragma once\nstd::string f();\n' >src/base/needy.h
finds "a header that does not compile alone" needy.h "$checks/headers_alone.py" . build
fresh; printf 'int  f( );\n' >src/base/ugly.h
finds "a file that clang-format would change" ugly.h "$checks/format.sh" .
fresh; printf 'int x;\n' >bpf/probe.bpf.c
finds "a BPF file without its licence" probe.bpf.c "$checks/licence.sh" .
fresh; printf 'see /home/%s/dwell\n' ada >notes.md
finds "a developer's home" notes.md "$checks/paths.sh" .
fresh; printf '#!/bin/sh\nif true; then\n' >broken.sh; chmod +x broken.sh
finds "a shell script that does not parse" broken.sh "$checks/scripts.py" .
fresh; printf '#!/usr/bin/env python3\ndef f(:\n' >broken; chmod +x broken
finds "a Python script that does not parse" broken "$checks/scripts.py" .
fresh; printf '#!/bin/sh\ntrue\n' >plain.sh
finds "a script that is not executable" plain.sh "$checks/scripts.py" .
exit "$bad"
