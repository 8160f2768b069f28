#!/usr/bin/env python3
"""Script check: every shell and Python script parses, and is executable when it has a #! line.

usage: scripts.py [ROOT]
"""
import os
import stat
import subprocess
import sys

SHELLS = {"bash": ["bash", "-n"], "sh": ["sh", "-n"]}


def parse(path, first_line):
    """A message if the script does not parse, else None. Python is compiled, not run."""
    interpreter = first_line.split()[-1].split("/")[-1] if first_line.startswith("#!") else ""
    if path.endswith(".py") or interpreter == "python3":
        with open(path, encoding="utf-8") as f:
            try:
                compile(f.read(), path, "exec")
            except SyntaxError as error:
                return f"{path}:{error.lineno}: {error.msg}"
        return None
    shell = SHELLS.get(interpreter) or (SHELLS["bash"] if path.endswith(".sh") else None)
    if shell:
        done = subprocess.run([*shell, path], capture_output=True, text=True)
        return done.stderr.strip() if done.returncode else None
    return None


def main():
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else ".")
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], capture_output=True,
                            text=True, check=True).stdout.split("\0")
    found, count = [], 0
    for path in sorted(p for p in listed if p and os.path.isfile(p)):
        with open(path, "rb") as f:
            first_line = f.readline(200).decode(errors="replace").strip()
        if not first_line.startswith("#!") and not path.endswith((".py", ".sh")):
            continue
        count += 1
        message = parse(path, first_line)
        if message:
            found.append(message)
        if first_line.startswith("#!") and not os.stat(path).st_mode & stat.S_IXUSR:
            found.append(f"{path}: has a #! line and is not executable")
    print("\n".join(found) if found else f"scripts: {count} parse")
    sys.exit(1 if found or not count else 0)


main()
