#!/usr/bin/env python3
"""Stacks of sleeping threads of programs that nobody here wrote equal those of libdwfl, or else gdb, frame by frame.

A few of the programs of tests/real_stacks, which has more and is run by hand."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "real_stacks"))

import truth_stacks
from comparison import compare
from dwell_e2e import check, finish, skip
from programs import PROGRAMS

# gdb knows nothing of the code that Node compiles as it runs.
KNOWN_TO = {"libdwfl": {"bash", "python", "git", "cc1", "node"}, "gdb": {"bash", "python", "cc1"}}

whose = next((which for which in ("libdwfl", "gdb") if which in truth_stacks.available()), None)
if whose is None:
    skip("neither eu-stack (package elfutils) nor gdb is installed")
for program in PROGRAMS:
    if program.name not in KNOWN_TO[whose]:
        continue
    if program.missing():
        print(f"{program.name}: not compared, not installed: {' '.join(program.missing())}")
        continue
    comparison = compare(program, [whose])
    for thread in comparison.different():
        print(f"{thread.name} {thread.pid}/{thread.tid}: {thread.ours}, {whose}: {thread.truths}")
    count = len(comparison.threads)
    check(count > 0 and not comparison.different(),
          f"{program.name}: {count - len(comparison.different())} of {count} stacks equal those of {whose}")
    check(comparison.whole >= 99.5, f"{program.name}: {comparison.whole:.3f} % of the off-CPU time has a whole stack, "
          f"{comparison.whole_by_pointer:.3f} % by frame pointers alone")
    by_pointer = comparison.count(lambda thread: thread.is_equal_by_pointer())
    check(by_pointer < count, f"{program.name}: {by_pointer} of them by frame pointers alone")
finish()
