#!/usr/bin/env python3
"""Programs that nobody here wrote: Python, a shell pipeline, a compiler; their waits are where one would look for them."""
import os
import sys

from dwell_e2e import check, finish, out, record_command, total
from truth import check_conservation, check_schedstat

CODE = "import time, threading, queue\nq = queue.Queue()\nthreading.Thread(target=lambda: [q.get() for _ in range(10)]).start()\n" \
       "for i in range(10):\n  time.sleep(0.05)\n  q.put(i)\n"
profile, _, _ = record_command([sys.executable, "-c", CODE])
sleeps = profile.rows(cause={"clock_nanosleep", "select", "pselect6"})
check(abs(total(sleeps) - 0.5e9) < 50e6, f"Python sleeps 10 x 50 ms: {total(sleeps) / 1e6:.1f} ms in {total(sleeps, 'count')} waits")
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
