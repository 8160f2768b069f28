#!/usr/bin/env python3
"""A thread that only lost the CPU was never blocked; one that yields says so; a sleeper on the same CPU is blocked."""
import subprocess

from dwell_e2e import PROGRAMS, check, finish, program, record_command, total
from truth import but_printing, check_conservation, check_schedstat, compare_waits

profile, truth, _ = record_command([program("spin2"), "--ms", "3000"])
for line in truth:
    times = profile.times(tid=line["tid"], name=line["name"])
    rows = profile.rows(tid=line["tid"], name=line["name"])
    runnable = [r for r in rows if r["class"].startswith("preempted")]
    wall = line["end_ns"] - line["start_ns"]
    blocked = total(but_printing(rows), "blocked_ns")
    check(blocked + times["censored_blocked_ns"] == 0, f"{line['name']}: blocked {blocked} of {times['blocked_ns']} ns not to print")
    check(total(runnable) >= 0.25 * wall, f"{line['name']}: preempted for {total(runnable) / 1e6:.0f} of {wall / 1e6:.0f} ms")
    count = total(runnable, "count")
    check(abs(count - line["involuntary"]) <= max(3, 0.01 * line["involuntary"]),
          f"{line['name']}: {count} preemptions, the kernel counted {line['involuntary']}")
    off = wall - line["cpu_ns"]
    check(abs(total(runnable) - off) <= max(0.01 * off, 12_000 * count + 1_000_000),
          f"{line['name']}: {total(runnable) / 1e6:.2f} ms off the CPU, wall less CPU time {off / 1e6:.2f} ms")
check_conservation(profile, "spin2: ")

profile, truth, _ = record_command([program("spin2"), "--ms", "300", "--yield"])
for line in truth:
    yielded = profile.rows(tid=line["tid"], name=line["name"], classes={"yielded"})
    share = total(yielded, "count") / max(1, total(profile.rows(tid=line["tid"], blocked=False), "count"))
    check(share > 0.95 and total(but_printing(profile.rows(tid=line["tid"])), "blocked_ns") == 0,
          f"{line['name']}: {total(yielded, 'count')} of its switches are yields ({share:.3f})")

# A sleeper between two hogs: its waits are blocked until the timer fires, then it queues for the CPU.
hogs = subprocess.Popen([f"{PROGRAMS}/spin2", "--ms", "6000"], stdout=subprocess.DEVNULL)
profile, truth, _ = record_command(["taskset", "-c", "0", program("nap"), "--us", "10000", "--waits", "100"])
hogs.kill()
hogs.wait()
line = truth[0]
rows = compare_waits(profile, line, {"clock_nanosleep"})
blocked, queued = total(rows, "blocked_ns"), total(rows, "run_queue_ns")
check(0.98 * 100 * 10e6 <= blocked <= 1.15 * 100 * 10e6,
      f"nap beside two hogs: blocked {blocked / 1e6:.1f} ms of 1000 asked, then on the run queue {queued / 1e6:.1f} ms")
check_conservation(profile, "nap beside two hogs: ")
check_schedstat(profile, "nap beside two hogs: ")
finish()
