#!/usr/bin/env python3
"""Two recorders at once, and another tool on the same tracepoint: the same times and stacks as alone, no frame of a probe."""
import shutil
import subprocess
import time

from dwell_e2e import Gated, Recorder, check, finish, program, record_command
from truth import check_conservation, check_no_glue, compare_waits


def stacks(profile):
    rows = profile.rows(cause={"clock_nanosleep"})
    return {tuple(profile.functions(r)) for r in rows if not any(f["kind"] == "placeholder" for f in profile.frames(r))}


alone, _, _ = record_command([program("nap"), "--waits", "50"])
nap = Gated("nap", "--waits", "200")
first = Recorder("-p", str(nap.pid), name="first.dwell").attached()
second = Recorder("-a", name="second.dwell").attached()
other = None
if shutil.which("bpftrace"):
    other = subprocess.Popen(["bpftrace", "-e", "tracepoint:sched:sched_switch { @[comm] = count(); }"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(2)
else:
    print("bpftrace is not installed: only two recorders of our own")
truth = nap.work()
profiles = {"the first": first.profile(), "the second": second.profile()}
if other:
    other.terminate()
    other.wait()
nap.close()
for label, profile in profiles.items():
    rows = [r for r in compare_waits(profile, truth[0], {"clock_nanosleep"})]
    named = [f["name"] for r in rows for f in profile.frames(r)]
    check_no_glue(named, f"{label}: ")
    # Where the kernel hides a switch there is a placeholder instead of its own stack.
    mine = {tuple(profile.functions(r)) for r in rows if not any(f["kind"] == "placeholder" for f in profile.frames(r))}
    check(mine and mine <= stacks(alone), f"{label}: the same stacks as alone {mine - stacks(alone) or ''}")
    mismatches = [x for x in profile.document["losses"] if "mismatch" in (x["name"] + x["meaning"]).lower()]
    check(all(x["count"] == 0 for x in mismatches), f"{label}: no kernel stack was taken for another {[x['count'] for x in mismatches]}")
    check_conservation(profile, label + ": ")
finish()
