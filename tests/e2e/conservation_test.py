#!/usr/bin/env python3
"""The whole machine, with sleepers, hogs, short-lived threads and processes: every thread's time adds up."""
import subprocess

from dwell_e2e import Recorder, check, finish, load, program, quietest
from truth import check_conservation, check_nothing_lost, check_schedstat


def story():
    noise = [subprocess.Popen([program("sleeper"), "--seconds", "3"], stdout=subprocess.DEVNULL),
             subprocess.Popen([program("spin2"), "--ms", "3000"], stdout=subprocess.DEVNULL),
             subprocess.Popen([program("churn"), "--threads", "2000"], stdout=subprocess.DEVNULL),
             subprocess.Popen(["sh", "-c", "for i in $(seq 200); do /bin/true; done"]),
             subprocess.Popen([program("hop")], stdout=subprocess.DEVNULL),
             # Threads that live through the whole window, for the comparison with the kernel's own books.
             subprocess.Popen([program("nap"), "--threads", "12", "--us", "5000", "--waits", "1600"], stdout=subprocess.DEVNULL)]
    recorder = Recorder("-a", "-d", "4s")
    seconds, code, said = recorder.wait()
    check(code == 0, f"dwell record -a -d 4s exits 0 in {seconds:.1f} s {said.strip()[-300:] if code else ''}")
    for process in noise:
        process.wait()
    profile = load(recorder.path)
    length = profile.window["length_ns"]
    check(abs(length - 4e9) < 50e6, f"the window is {length / 1e9:.3f} s, 4 asked")
    check_conservation(profile)
    compared = check_schedstat(profile)
    check(compared > 10, f"schedstat was read for {compared} threads")
    too_long = [t["name"] for t in profile.threads if t["times"]["alive_ns"] > length and not t["folded"]]
    check(not too_long, f"no thread lived longer than the window {too_long[:3] or ''}")
    running = sum(t["times"]["running_ns"] for t in profile.threads)
    check(running <= length * profile.document["cpus"], f"all threads together ran {running / 1e9:.2f} s on "
          f"{profile.document['cpus']} CPUs in {length / 1e9:.2f} s")
    check_nothing_lost(profile)
    residual = profile.document["totals"]["residual_ns"]
    check(abs(residual) <= 1000 * max(1, len(profile.threads)), f"the printed residual is {residual} ns")


quietest(story)
finish()
