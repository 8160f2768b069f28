#!/usr/bin/env python3
"""-p, -t and -a record exactly whom they name; a number that names nobody is an error, not an empty profile."""
import os
import subprocess
import time

from dwell_e2e import DWELL, Gated, Recorder, check, finish, load, out, program, run, total
from truth import check_conservation

PATHS = ["path_north", "path_east", "path_south", "path_west"]


def paths_of(profile, **which):
    return {p: total(profile.rows(function=p, **which)) for p in PATHS if profile.rows(function=p, **which)}


def gated_naps():
    return Gated("nap", "--threads", "4", "--us", "5000", "--waits", "200")


def close_to(profile, truth):
    """Each function's time is the truth of the thread of that name, to 0.5 %; less by the CPU time inside its waits and by
    what the kernel did not tell, more by what it was preempted outside them, on a loaded machine."""
    times, good = paths_of(profile, pid=truth[0]["pid"]), True
    for x in truth:
        over, whole = times.get(x["name"], 0) - x["sum_ns"], 0.005 * x["sum_ns"]
        less = max(whole, x["cpu_ns"]) + profile.times(tid=x["tid"]).get("lost_ns", 0)
        more = whole + total(profile.rows(tid=x["tid"], blocked=False))
        if not -less <= over <= more:
            print(f"{x['name']}: {over} ns more than its clock saw, allowed -{less:.0f} to {more:.0f}")
            good = False
    return good


def show(times):
    return {name: f"{ns / 1e6:.1f} ms" for name, ns in times.items()}


one, other = gated_naps(), gated_naps()
recorder = Recorder("-p", str(one.pid)).attached()
truth = one.work()
other.work()
profile = recorder.profile()
check(close_to(profile, truth), f"-p: all four functions with their own times {show(paths_of(profile))}")
check(not profile.rows(pid=other.pid), "-p: nothing of the second copy")
check({p["pid"] for p in profile.processes} == {one.pid}, f"-p: one process {[p['pid'] for p in profile.processes]}")
check_conservation(profile, "-p: ")
one.close()
other.close()

for arguments, word in ((["-p", str(os.getpid()), "--kernel-threads"], "no kernel thread"), (["-t", "2", "--user-threads"], "is a kernel thread")):
    done = run([DWELL, "record", *arguments, "-d", "1s", "-o", out("never.dwell")])
    check(done.returncode == 2 and word in done.stderr and not os.path.exists(out("never.dwell")),
          f"{' '.join(arguments)}: exit {done.returncode}, {done.stderr.strip()[:200]}")

one, other = gated_naps(), gated_naps()
recorder = Recorder("-p", f"{one.pid},{other.pid}").attached()
one.release()
truth = other.work()
one.wait_for("done")
profile = recorder.profile()
check(close_to(profile, truth) and len(paths_of(profile, pid=one.pid)) == 4, "-p A,B: both processes, whole")
one.close()
other.close()

one, other = gated_naps(), gated_naps()
recorder = Recorder("-a").attached()
truth = one.work()
profile = recorder.profile()
check(close_to(profile, truth), f"-a: the same four functions {show(paths_of(profile, pid=one.pid))}")
pids = {p["pid"] for p in profile.processes}
check({one.pid, other.pid, os.getpid()} <= pids, f"-a: {len(pids)} processes, those that only slept and this story's as well")
kernel = [t for t in profile.threads if t["kernel"]]
check(kernel, f"-a: {len(kernel)} kernel threads, none with a user frame")
check(not [r for r in profile.all_rows if profile.threads[r["thread"]]["kernel"] and profile.user_functions(r)],
      "-a: kernel threads have no user frames")
one.close()

# -t: threads that live all the time, each in a function of its own.
many = subprocess.Popen([program("nap"), "--threads", "4", "--us", "5000", "--forever"],
                        stdout=subprocess.DEVNULL)
time.sleep(0.3)
tids = sorted(int(t) for t in os.listdir(f"/proc/{many.pid}/task"))[1:]
for tid, name in zip(tids[:2], PATHS):
    recorder = Recorder("-t", str(tid), "-d", "1s").attached()
    recorder.wait()
    profile = load(recorder.path)
    found = paths_of(profile)
    comm = open(f"/proc/{many.pid}/task/{tid}/comm", encoding="utf-8").read().strip()
    check(list(found) == [comm] and {t["tid"] for t in profile.threads} == {tid},
          f"-t {tid}: exactly {comm}: {show(found)}")
recorder = Recorder("-a", "--kernel-threads", "-d", "1s").attached()
recorder.wait()
profile = load(recorder.path)
check(profile.threads and all(t["kernel"] for t in profile.threads), f"--kernel-threads: {len(profile.threads)}, no other")
recorder = Recorder("-a", "--user-threads", "-d", "1s").attached()
recorder.wait()
profile = load(recorder.path)
check(profile.threads and not any(t["kernel"] for t in profile.threads), f"--user-threads: {len(profile.threads)}, no other")
many.kill()
many.wait()
other.close()

gone = subprocess.Popen(["true"])
gone.wait()
for option, number in (("-p", gone.pid), ("-t", gone.pid), ("-p", 4194304), ("-p", 0), ("-p", -1), ("-p", "12x"), ("-p", "99999999999999999999")):
    done = run([DWELL, "record", option, str(number), "-d", "1s", "-o", out("nobody.dwell")], timeout=10)
    check(done.returncode in (1, 2) and str(number) in done.stderr and not os.path.exists(out("nobody.dwell")),
          f"{option} {number}: exit {done.returncode}, no file, says: {done.stderr.strip()[:200]}")
finish()
