#!/usr/bin/env bash
# Path check: no file names a folder of the machine that it was written on. usage: paths.sh [ROOT]
# /home/user is the made-up home of examples and tests.
set -u
cd "${1:-.}" || exit 1
top=$(git rev-parse --show-toplevel) || exit 1
pattern='/home/[A-Za-z0-9_.-]+/|/Users/[A-Za-z]+/|(^|[^A-Za-z0-9_.])/wor[k]/'
found=$(git grep -InE "$pattern" -- . ':!*package-lock.json' | grep -v '/home/user/')
# A clone in a folder directly under / (or under /tmp) would match ordinary text.
case $top in /*/*/*) found+=$(git grep -InF "$top/" -- .) ;; esac
if [ -n "$found" ]; then
  printf '%s\npaths: the lines above name a folder of one machine\n' "$found"
  exit 1
fi
echo "paths: $(git ls-files | wc -l) files, none names a folder of one machine"
