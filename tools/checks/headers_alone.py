#!/usr/bin/env python3
"""Every header compiles alone, with g++ and with clang++: it includes what it uses. A source that includes its own header
first shows it to both, in the everyday build and in that of asan; here they see the others.

usage: headers_alone.py ROOT BUILD_DIR
Include paths come from BUILD_DIR/compile_commands.json. A header that passed is not compiled again
until a file that it includes changes (stamp with the dependencies in BUILD_DIR/headers_alone).
"""
import concurrent.futures
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile

CXX = ["g++", "clang++-19"]
CC = ["gcc", "clang-19"]


def include_flags(build):
    """The union of -I, -isystem and -D of all compile commands, in first-seen order."""
    flags = []
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        for entry in json.load(f):
            words = entry["command"].split()
            for i, word in enumerate(words):
                found = [word, words[i + 1]] if word == "-isystem" else [word]
                if word.startswith(("-I", "-DFMT", "-isystem")) and found not in flags:
                    flags.append(found)
    return [word for found in flags for word in found]


def headers(root):
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "src", "abi"],
                            capture_output=True, text=True, check=True).stdout.split("\n")
    return [p for p in sorted(listed) if p.endswith(".h") and os.path.exists(os.path.join(root, p))]


def is_shown_by_its_source(root, header):
    """True when HEADER's .cc has it as its first include."""
    try:
        with open(os.path.join(root, header[:-len(".h")] + ".cc"), encoding="utf-8") as f:
            first = next((line for line in f if line.startswith("#include")), "")
    except OSError:
        return False
    return first.strip() == f'#include "{header.removeprefix("src/")}"'


def is_fresh(stamp, command):
    """True when `stamp` was written by this command after the last change of every file it names."""
    try:
        made = os.stat(stamp).st_mtime
        with open(stamp, encoding="utf-8") as f:
            lines = f.read().split("\n")
        return lines[0] == command and all(os.stat(p).st_mtime < made for p in lines[1:] if p)
    except OSError:
        return False


def compile_alone(root, compiler, header, flags, stamps):
    """Compile `header` as the only text of a translation unit. Returns the diagnostics, "" if none."""
    language = ["-x", "c++", "-std=c++2b"] if "++" in compiler else ["-x", "c", "-std=c11"]
    command = [compiler, *language, "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
               "-Wno-pragma-once-outside-header", "-I", os.path.join(root, "src"), "-I", root, *flags]
    name = hashlib.sha256(" ".join([compiler, header]).encode()).hexdigest()[:24]
    stamp = os.path.join(stamps, name)
    if is_fresh(stamp, " ".join(command)):
        return ""
    text = f'#include "{os.path.join(root, header)}"\n'
    with tempfile.NamedTemporaryFile("r", suffix=".d") as deps:
        done = subprocess.run([*command, "-MD", "-MF", deps.name, "-"], input=text, text=True,
                              capture_output=True)
        if done.returncode:
            return f"{header} does not compile alone ({compiler}):\n{done.stderr[:2000]}"
        names = [n for n in deps.read().replace("\\\n", " ").split()[1:] if n.startswith("/")]
    with open(stamp, "w", encoding="utf-8") as f:
        f.write("\n".join([" ".join(command), *names]))
    return ""


def main():
    root, build = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    stamps = os.path.join(build, "headers_alone")
    os.makedirs(stamps, exist_ok=True)
    flags = include_flags(build)
    jobs = []
    for header in headers(root):
        for compiler in CXX + (CC if header.startswith("abi/") else []):
            if shutil.which(compiler) and not ("++" in compiler and is_shown_by_its_source(root, header)):
                jobs.append((root, compiler, header, flags, stamps))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = [text for text in pool.map(lambda job: compile_alone(*job), jobs) if text]
    missing = [c for c in CXX if not shutil.which(c)]
    print("\n".join(found) if found else f"headers: {len(jobs)} compilations, each alone, no error")
    if missing:
        print(f"headers: {', '.join(missing)} is not installed and was left out")
    sys.exit(1 if found or not jobs else 0)


main()
