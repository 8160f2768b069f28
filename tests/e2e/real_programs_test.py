#!/usr/bin/env python3
"""Programs that nobody here wrote: Python, a shell pipeline, a compiler; their waits are where one would look for them."""
import os
import sys

from dwell_e2e import check, finish, out, record_command, total
from truth import check_conservation, check_schedstat

CODE = """import time, threading, queue
q = queue.Queue()
threading.Thread(target=lambda: [q.get() for _ in range(10)]).start()
slept = 0
for i in range(10):
  start = time.monotonic_ns()
  time.sleep(0.05)
  slept += time.monotonic_ns() - start
  q.put(i)
print('{"slept_ns": %d}' % slept)
"""
profile, truth, _ = record_command([sys.executable, "-c", CODE])
sleeps = profile.rows(cause={"clock_nanosleep", "select", "pselect6"})
slept_ns = truth[0]["slept_ns"]
check(499e6 <= total(sleeps) <= slept_ns and total(sleeps, "count") == 10,
      f"Python sleeps 10 x 50 ms: {total(sleeps) / 1e6:.1f} ms in {total(sleeps, 'count')} waits, {slept_ns / 1e6:.1f} ms by its own clock")
futex = total(profile.rows(cause={"futex"}))
check(futex > 0.4e9, f"its other thread waits for the queue: {futex / 1e6:.1f} ms on futexes")
check_conservation(profile, "Python: ")

source = out("a.c")
with open(source, "w", encoding="utf-8") as f:
    f.write("#include <stdio.h>\nint main(void) { return puts(\"x\"); }\n")
profile, _, _ = record_command(["cc", "-O2", "-o", out("a"), source])
names = {p["name"] for p in profile.processes}
check({"cc1", "as"} <= names and os.path.exists(out("a")), f"a compiler and its children: {sorted(names)}")
waits = total(profile.rows(cause={"wait4", "waitid"}))
check(waits > 0, f"the driver waits for them: {waits / 1e6:.1f} ms")
check_conservation(profile, "cc: ")

profile, _, _ = record_command(["sh", "-c", "seq 400000 | sort -R | sort -n | tail -n 1"])
names = {p["name"] for p in profile.processes}
check({"seq", "sort", "tail"} <= names, f"a pipeline: {sorted(names)}")
reads = total(profile.rows(cause={"read"}))
check(reads > 0, f"its readers wait for their writers: {reads / 1e6:.1f} ms in read")
check_conservation(profile, "pipeline: ")
compared = check_schedstat(profile, "pipeline: ")
print(f"schedstat was there for {compared} threads")
finish()
