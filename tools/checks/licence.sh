#!/usr/bin/env bash
# Licence check: files under bpf/ and abi/ say in their first line that they are dual BSD-2-Clause / GPL-2.0
# (the kernel loads GPL programs, others may reuse the structs), and LICENSE is the Apache licence.
# usage: licence.sh [ROOT]
set -u
cd "${1:-.}" || exit 1
bad=0 count=0
while read -r f; do
  [ -f "$f" ] || continue
  count=$((count + 1))
  if ! head -n 1 "$f" | grep -qF 'SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)'; then
    echo "$f: the first line is not 'SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)'"
    bad=1
  fi
done < <(git ls-files -co --exclude-standard -- 'bpf/*.c' 'bpf/*.h' 'abi/*.h')
[ "$count" -gt 0 ] || { echo "licence: no file under bpf/ or abi/: wrong root?"; bad=1; }
grep -q 'Apache License' LICENSE || { echo "LICENSE: not the Apache licence"; bad=1; }
[ "$bad" = 0 ] && echo "licence: $count files under bpf/ and abi/ are dual-licensed"
exit "$bad"
