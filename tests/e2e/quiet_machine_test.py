#!/usr/bin/env python3
"""A quiet machine: no idle task, no dwell in the report, and dwell itself costs next to nothing."""
import os
import time

from dwell_e2e import Recorder, check, finish, load

SECONDS = 6
recorder = Recorder("-a", "-d", f"{SECONDS}s").attached()


def own_use():
    with open(f"/proc/{recorder.process.pid}/stat", encoding="utf-8") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    with open(f"/proc/{recorder.process.pid}/status", encoding="utf-8") as f:
        status = dict(line.split(":", 1) for line in f if ":" in line)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), int(status["voluntary_ctxt_switches"]), status["VmRSS"].strip()


def idle_seconds():
    with open("/proc/stat", encoding="utf-8") as f:
        return int(f.readline().split()[4]) / os.sysconf("SC_CLK_TCK")


time.sleep(0.7)
before, idle_before = own_use(), idle_seconds()
time.sleep(3)
after, idle_share = own_use(), (idle_seconds() - idle_before) / 3 / os.cpu_count()
recorder.wait()
profile = load(recorder.path)
idle = [t["name"] for t in profile.threads if (t["tid"] == 0 and t["name"] != "(folded)") or t["name"].startswith("swapper")]
check(not idle, f"no idle task {idle}")
own = [t for t in profile.threads if profile.processes[t["process"]]["pid"] == recorder.process.pid]
check(not own, f"no thread of dwell {[t['name'] for t in own]}")
cpu = (after[0] - before[0]) / 3
quiet = idle_share > 0.9
print(f"the machine was {100 * idle_share:.0f} % idle: {'quiet' if quiet else 'too busy to judge what dwell costs a quiet one'}")
check(cpu < 0.01 or not quiet, f"dwell used {100 * cpu:.2f} % of a CPU over 3 s")
check(not quiet or (after[1] - before[1]) / 3 < 50, f"dwell was switched {(after[1] - before[1]) / 3:.1f} times a second; resident {after[2]}")
cost = profile.document["cost"]
check(all(cost[key] > 0 for key in ("kernel_memory_bytes", "user_memory_bytes", "recorder_cpu_ns")), f"the report prints its cost: {cost}")
check(cost["kernel_memory_bytes"] + cost["user_memory_bytes"] < 1 << 30, "memory is bounded below 1 GiB")
finish()
