#!/usr/bin/env python3
"""A signal at the first instruction of a function: that function is named, not the one that ends before it."""
import platform

from dwell_e2e import Gated, Recorder, check, finish, skip
from truth import check_conservation, compare_waits

if platform.machine() != "x86_64":
    skip("the program raises its signal at a first instruction on x86-64 only")

# Attached: its tables are there before its first nap.
target = Gated("interrupted")
recorder = Recorder("-p", str(target.pid)).attached()
truth = target.work()
profile = recorder.profile()
target.close()
for line in truth:
    compare_waits(profile, line, {"clock_nanosleep"})
rows = profile.rows(cause={"clock_nanosleep"})
check(rows, "there are naps")
for row in rows:
    names = profile.user_functions(row)
    check("handler" in names and "calls_victim" in names, f"the handler and what it interrupted: {names}")
    check("victim" in names and "before_victim" not in names, f"the interrupted function by its own name: {names}")
check_conservation(profile)
finish()
