#!/usr/bin/env python3
"""Installs Dwell into a folder of its own and uses it from outside: the examples of docs/classes are compiled against the
installed library, with find_package and with pkg-config, and print what their pages say. usage: install_test.py BUILD_DIR CXX
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))

from dwell_e2e import OUT, check, finish, program, run  # noqa: E402

PAGES = {os.path.basename(path)[:-3]: open(path, encoding="utf-8").read()
         for path in glob.glob(os.path.join(ROOT, "docs/classes/*.md"))}
INDEX = PAGES.pop("README")
PREFIX = os.path.join(OUT, "prefix")


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S)


def install(build):
    done = run(["cmake", "--install", build, "--prefix", PREFIX], timeout=60)
    if not check(done.returncode == 0, f"cmake --install: exit {done.returncode} {done.stderr.strip()[-600:]}"):
        finish()
    version = run([os.path.join(PREFIX, "bin/dwell"), "--version"])
    check(version.returncode == 0 and version.stdout.startswith("dwell "), f"the installed program runs: {version.stdout.strip()}")
    for name in ("LICENSE", "LICENSES/BSD-2-Clause.txt", "LICENSES/GPL-2.0-only.txt", "LICENSES/MIT-preact.txt", "docs/classes/README.md"):
        check(os.path.exists(os.path.join(PREFIX, "share/doc/dwell", name)), f"{name} is there")
    strays = [path for path in glob.glob(PREFIX + "/**", recursive=True) if path.endswith((".h", ".cmake", ".pc"))
              and any(folder in open(path, encoding="utf-8").read() for folder in (ROOT, build, PREFIX))]
    check(not strays, f"nothing that is installed names this source tree, so that it can be moved {strays}")


def check_pages():
    for name, page in PAGES.items():
        check(len(blocks(page, "cpp")) == 1 and len(blocks(page, "text")) == 1, f"{name}: one example and what it prints")
        check(f"({name}.md)" in INDEX, f"{name}: listed in the index")
        for header in re.findall(r'#include "(dwell/[^"]+)"', page):
            check(os.path.exists(os.path.join(PREFIX, "include", header)), f"{name}: {header} is installed")


def build_with_cmake(compiler):
    """An outside project with one program for each page. Returns the folder of the programs."""
    project = os.path.join(OUT, "outside")
    os.makedirs(project)
    lines = ["cmake_minimum_required(VERSION 3.25)", "project(outside LANGUAGES CXX)", "find_package(dwell 0.1 REQUIRED)"]
    for name, page in PAGES.items():
        with open(os.path.join(project, f"{name}.cc"), "w", encoding="utf-8") as f:
            f.write(blocks(page, "cpp")[0])
        lines += [f"add_executable({name} {name}.cc)", f"target_link_libraries({name} PRIVATE dwell::dwell)",
                  f"target_compile_options({name} PRIVATE -Wall -Wextra -Werror)"]
    with open(os.path.join(project, "CMakeLists.txt"), "w", encoding="utf-8") as f:
        f.write("\n".join(lines) + "\n")
    done = run(["cmake", "-G", "Ninja", "-S", project, "-B", project, f"-DCMAKE_PREFIX_PATH={PREFIX}", f"-DCMAKE_CXX_COMPILER={compiler}"],
               timeout=60)
    check(done.returncode == 0, f"find_package(dwell): exit {done.returncode} {done.stderr.strip()[-600:]}")
    done = run(["cmake", "--build", project, "-j2", "--", "-k0"], timeout=400)
    if not check(done.returncode == 0, f"the {len(PAGES)} examples compile without a warning {done.stdout[-3000:] if done.returncode else ''}"):
        finish()
    return project


def run_examples(folder):
    for name, page in PAGES.items():
        if name == "kernel_event_array":
            continue
        done = run([os.path.join(folder, name)], timeout=30)
        said, printed = blocks(page, "text")[0], done.stdout
        check(done.returncode == 0 and printed == said, f"{name}: prints what its page says{'' if printed == said else f': {printed!r} {done.stderr!r}'}")


def run_on_kernel(folder):
    """The example that needs a BPF program: one outputs 1200 times while it reads."""
    pin = f"/sys/fs/bpf/dwell_install_{os.getpid()}"
    source = subprocess.Popen([program("event_source"), program("event_source") + ".bpf.o", "install_test", pin, "64"],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if not source.stdout.readline():
        print(f"not shown here: kernel_event_array, for want of privileges ({source.communicate()[1].strip()})")
        return
    cpu = min(os.sched_getaffinity(0))
    reader = subprocess.Popen([os.path.join(folder, "kernel_event_array"), pin], stdout=subprocess.PIPE, text=True)
    first = reader.stdout.readline()
    source.stdin.write(f"output {cpu} 1200 40\n")
    source.stdin.flush()
    truth = json.loads(source.stdout.readline())
    rest = reader.communicate(timeout=20)[0]
    source.communicate("quit\n", timeout=10)
    said = blocks(PAGES["kernel_event_array"], "text")[0]
    check(reader.returncode == 0 and first + rest == said and truth["ok"] == 1200, f"kernel_event_array: {first + rest!r}, the program made {truth['ok']}")


def build_with_pkg_config(compiler, folder):
    found = [path for path in glob.glob(PREFIX + "/**/dwell.pc", recursive=True)]
    check(len(found) == 1, f"one dwell.pc: {found}")
    moved = os.path.join(OUT, "moved")  # an installed tree may be moved
    shutil.copytree(PREFIX, moved)
    where = os.path.join(moved, os.path.relpath(os.path.dirname(found[0]), PREFIX))
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "dwell"], capture_output=True, text=True,
                           env={**os.environ, "PKG_CONFIG_PATH": where}).stdout.split()
    binary = os.path.join(OUT, "by_pkg_config")
    done = run([compiler, "-std=c++23", os.path.join(folder, "ring_reader.cc"), "-o", binary, *flags], timeout=120)
    check(done.returncode == 0, f"compiles with pkg-config's flags {flags} {done.stderr[-1000:]}")
    check(done.returncode == 0 and run([binary]).stdout == blocks(PAGES["ring_reader"], "text")[0], "and prints what its page says")


def check_namespace(build):
    archive = glob.glob(PREFIX + "/**/libdwell.a", recursive=True)
    names = run(["nm", "-C", "--defined-only", *archive], timeout=60).stdout
    ours = [line.split(" ", 2)[2] for line in names.splitlines() if " T dwell::" in line]
    strangers = [name for name in ours if not name.startswith("dwell::v0::")]
    check(len(ours) > 100 and not strangers, f"{len(ours)} functions, all in the versioned namespace {strangers[:3]}")


install(os.path.abspath(sys.argv[1]))
check_pages()
the_folder = build_with_cmake(sys.argv[2])
run_examples(the_folder)
run_on_kernel(the_folder)
build_with_pkg_config(sys.argv[2], the_folder)
check_namespace(sys.argv[1])
finish()
