#!/usr/bin/env python3
"""The whole machine while processes of many programs come and go: memory and files of the recorder stay flat."""
import os
import shutil
import subprocess
import time

from dwell_e2e import Recorder, check, finish, out, program
from truth import check_conservation

COPIES, SECONDS = 40, 16
os.mkdir(out("copies"))
for i in range(COPIES):
    shutil.copy(program("nap"), out(f"copies/nap{i}"))
loop = f"while :; do for p in {out('copies')}/*; do $p --us 300 --waits 2 >/dev/null; done; done"
recorder = Recorder("-a").attached()
makers = subprocess.Popen(["sh", "-c", loop])


def use():
    with open(f"/proc/{recorder.process.pid}/status", encoding="utf-8") as f:
        status = dict(line.split(":", 1) for line in f if ":" in line)
    return int(status["VmRSS"].split()[0]) * 1024, len(os.listdir(f"/proc/{recorder.process.pid}/fd"))


time.sleep(SECONDS / 2)
middle = use()
time.sleep(SECONDS / 2)
end = use()
makers.kill()
makers.wait()
profile = recorder.profile()
lives = sum(1 for t in profile.threads if t["name"].startswith("nap")) + sum(t["folded"] for t in profile.threads)
growth = (end[0] - middle[0]) / (SECONDS / 2)
check(growth < 4e6, f"memory grew by {growth / 1e6:.2f} MB/s from {middle[0] / 1e6:.0f} MB while {lives / SECONDS:.0f} processes a second came and went")
check(end[1] < 1000, f"open files: {middle[1]}, later {end[1]}")
named = [r for r in profile.rows(cause={"clock_nanosleep"}) if profile.threads[r["thread"]]["name"].startswith("nap")]
good = sum(r["total_ns"] for r in named if "inner" in profile.functions(r))
every = sum(r["total_ns"] for r in named)
check(every > 0 and good > 0.9 * every, f"{100 * good / max(1, every):.1f} % of the time of programs that are gone has its functions' names")
check_conservation(profile)
finish()
