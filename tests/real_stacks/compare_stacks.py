#!/usr/bin/env python3
"""Compares Dwell's stacks of sleeping threads with gdb's and libdwfl's, frame by frame, over real programs.

usage: compare_stacks.py [--install] [--differences] [PROGRAM...]   (default: all; needs root)
Environment: DWELL, the binary (default: that of the preset dev). docs/stacks.md has the table of a run.
"""
import argparse
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "e2e")]

import truth_stacks
from comparison import Comparison, compare
from dwell_e2e import OUT
from programs import PROGRAMS

SHOWN_FRAMES = 12
HEAD = ("program", "threads", "equal", "gdb", "libdwfl", "own", "frames", "whole %", "FP equal", "FP frames", "FP whole %")


def install(packages):
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    subprocess.run(["apt-get", "-qq", "update"], check=True, env=environment)
    subprocess.run(["apt-get", "-qq", "-y", "install", "--no-install-recommends", *sorted(packages)], check=True, env=environment)


def shared_frames(stack, other):
    """How many frames from the leaf on are the same."""
    return next((i for i, (a, b) in enumerate(zip(stack, other)) if a != b), min(len(stack), len(other)))


def show(stack, first):
    shown = [f"      {i:3} {address:#14x} {path}" for i, (path, address) in enumerate(stack)][first:first + SHOWN_FRAMES]
    return "\n".join(shown + ["      ..."] * (len(stack) > first + SHOWN_FRAMES)) or "      no more"


def print_difference(thread):
    """Each stack from the last frame on that all of them share."""
    print(f"  {thread.name} {thread.pid}/{thread.tid}")
    ours = max(thread.ours or [[]], key=lambda s: max((shared_frames(s, t) for t in thread.truths.values()), default=0))
    first = max(min((shared_frames(ours, t) for t in thread.truths.values()), default=0) - 1, 0)
    for label, stack in [("dwell", ours), *thread.truths.items()]:
        print(f"    {label}, {len(stack)} frames\n{show(stack, first)}")


def row(program, comparison: Comparison):
    count, frames = comparison.count, comparison.mean_frames()
    own = count(lambda t: t.equals(program.own_truth)) if program.own_truth else "-"
    return (program.name, len(comparison.threads), count(lambda t: t.is_equal()), count(lambda t: t.equals("gdb")),
            count(lambda t: t.equals("libdwfl")), own, f"{frames[0]:.1f}", f"{comparison.whole:.3f}", count(lambda t: t.is_equal_by_pointer()),
            f"{frames[1]:.1f}", f"{comparison.whole_by_pointer:.3f}")


def print_row(cells):
    print("{:<12}".format(cells[0]) + "".join(f"{cell!s:>11}" for cell in cells[1:]), flush=True)


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--install", action="store_true", help="install what is missing with apt-get")
    parser.add_argument("--differences", action="store_true", help="print where gdb and libdwfl disagree with Dwell, one by one")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=" ".join(p.name for p in PROGRAMS))
    return parser.parse_args()


def main():
    asked = options()
    wanted = [p for p in PROGRAMS if not asked.programs or p.name in asked.programs]
    missing = {package for p in wanted for package in p.missing()}
    missing |= {truth_stacks.PACKAGES[which] for which in truth_stacks.PACKAGES if which not in truth_stacks.available()}
    if asked.install and missing:
        install(missing)
    whose = truth_stacks.available()
    if not whose:
        sys.exit("neither gdb nor eu-stack (elfutils) is installed: run with --install")
    print_row(HEAD)
    compared = []
    for program in wanted:
        if program.missing():
            print(f"{program.name:<12}  skipped: not installed: {' '.join(program.missing())}")
            continue
        comparison = compare(program, whose)
        compared.append(comparison)
        print_row(row(program, comparison))
        for thread in comparison.threads:
            if not thread.is_equal() or asked.differences and not all(thread.equals(which) for which in whose):
                print_difference(thread)
    threads = sum(len(c.threads) for c in compared)
    equal = sum(len(c.threads) - len(c.different()) for c in compared)
    print(f"{equal} of {threads} stacks equal, {100 * equal / max(threads, 1):.2f} %")
    shutil.rmtree(OUT, ignore_errors=True)


main()
