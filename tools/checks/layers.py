#!/usr/bin/env python3
"""Layer check: the tree is the data flow, so a folder includes only folders above it in LAYERS.

Also: ring/ makes no syscall, export/ sees only profile/ and base/, only probe/ sees a BPF skeleton,
and no two headers include each other. `layers.py [ROOT]` prints one line per violation, exits 1 on any.
"""
import os
import re
import sys

LAYERS = ["abi", "base", "ring", "event_array", "runtime", "probe", "collect", "unwind", "python", "symbolize",
          "profile", "export", "cli"]
ONLY = {"export": {"profile", "base"}, "abi": set(), "base": set()}
# Headers through which a syscall could reach ring/, which is memory only.
SYSCALL_HEADERS = re.compile(r"^(unistd|fcntl|poll|syscall|linux/perf_event|linux/bpf|bpf/.*|errno|"
                             r"sys/(mman|syscall|ioctl|epoll|eventfd|socket|types|stat))\.h$")
# The one kernel header that ring/ may read: the layout of the metadata page, not a way to call.
RING_MAY = {"linux/perf_event.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)
SOURCE = (".h", ".cc", ".c", ".inc")


def sources(root):
    """Every source file under src/ and abi/, as (path relative to root, folder)."""
    for top in ("src", "abi"):
        for where, dirs, names in os.walk(os.path.join(root, top)):
            dirs.sort()
            for name in sorted(names):
                if not name.endswith(SOURCE):
                    continue
                path = os.path.relpath(os.path.join(where, name), root)
                parts = path.split(os.sep)
                yield path, ("abi" if top == "abi" else parts[1] if len(parts) > 2 else "")


def folder_of(target):
    """The folder that `#include "target"` reaches, or None for a file that is not ours."""
    first = target.split("/", 1)[0]
    return first if "/" in target and first in LAYERS else None


def check_include(path, folder, quote, target):
    if target.endswith(".skel.h") and folder != "probe":
        return f"{path}: includes {target}; only probe/ sees a BPF skeleton"
    if folder == "ring" and quote == "<" and SYSCALL_HEADERS.match(target):
        if target not in RING_MAY and not path.endswith(("_test.cc", "_bench.cc", "_fuzz.cc")):
            return f"{path}: includes <{target}>; ring/ makes no syscall"
    reached = folder_of(target)
    if reached is None or reached == folder:
        return None
    if folder in ONLY and reached not in ONLY[folder]:
        allowed = ", ".join(sorted(ONLY[folder])) or "nothing of ours"
        return f"{path}: includes {target}; {folder}/ sees only {allowed}"
    if LAYERS.index(reached) > LAYERS.index(folder):
        return f"{path}: includes {target}; {reached}/ lies below {folder}/ in the data flow"
    return None


def find_cycle(graph):
    """The first include cycle between headers, as a list of paths, or None."""
    done, trail = set(), []

    def visit(node):
        if node in trail:
            return trail[trail.index(node):] + [node]
        if node in done:
            return None
        trail.append(node)
        for following in graph.get(node, ()):
            cycle = visit(following)
            if cycle:
                return cycle
        trail.pop()
        done.add(node)
        return None

    for node in sorted(graph):
        cycle = visit(node)
        if cycle:
            return cycle
    return None


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else "."
    found, graph, count = [], {}, 0
    for path, folder in sources(root):
        if folder not in LAYERS:
            found.append(f"{path}: folder is not in the list of layers (tools/checks/layers.py)")
            continue
        count += 1
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
            text = f.read()
        for quote, target in INCLUDE.findall(text):
            problem = check_include(path, folder, quote, target)
            if problem:
                found.append(problem)
            if path.endswith(".h") and folder_of(target):
                named = target if target.startswith("abi/") else "src/" + target
                graph.setdefault(path, []).append(named)
    cycle = find_cycle(graph)
    if cycle:
        found.append("include cycle: " + " -> ".join(cycle))
    print("\n".join(found) if found else f"layers: {count} files, no violation")
    if not count:
        print("layers: no source file found: wrong root?")
    sys.exit(1 if found or not count else 0)


main()
