#!/usr/bin/env bash
# Format check: every C and C++ file is as clang-format 14 writes it. usage: format.sh [ROOT]
# Version 14 and no other: the versions disagree, and Debian 12 has this one.
set -u
cd "${1:-.}" || exit 1
formatter=$(command -v clang-format-14) || { echo "format: clang-format-14 is not installed"; exit 77; }
mapfile -t files < <(git ls-files -co --exclude-standard -- '*.h' '*.c' '*.cc' '*.cpp' |
  grep -v 'node_modules/' | while read -r f; do [ -f "$f" ] && echo "$f"; done)
[ "${#files[@]}" -gt 0 ] || { echo "format: no file found: wrong root?"; exit 1; }
if ! said=$("$formatter" --dry-run -Werror "${files[@]}" 2>&1); then
  sed -n 's/^\([^ :]*:[0-9]*\):.*clang-format-violations.*/\1/p' <<<"$said" | sort -t: -uk1,1
  echo "format: the first difference of each file stands above; run clang-format-14 -i on them"
  exit 1
fi
echo "format: ${#files[@]} files as clang-format 14 writes them"
