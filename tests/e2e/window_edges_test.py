#!/usr/bin/env python3
"""Threads blocked before the start or beyond the end are there, with exactly the time inside the window."""
import signal
import time

from dwell_e2e import Gated, Recorder, check, finish, load, total
from truth import check_conservation

# Blocked in read() all the time: the gate before the work.
stuck = Gated("nap")
recorder = Recorder("-p", str(stuck.pid), "-d", "2s").attached()
recorder.wait()
profile = load(recorder.path)
rows = profile.rows(tid=stuck.pid)
length = profile.window["length_ns"]
check(len(rows) == 1 and rows[0]["censored"] == "both", f"one row, cut at both ends: {[r['censored'] for r in rows]}")
check(abs(total(rows, "blocked_ns") - length) <= 1000, f"blocked {total(rows, 'blocked_ns')} ns of a window of {length} ns")
check(rows[0]["cause"] == "read" and rows[0]["class"] == "interruptible", f"in {rows[0]['cause']}, {rows[0]['class']}")
print(f"its stack, as far as this kernel and its frames show it: {profile.functions(rows[0])}")
check(any(f["kind"] == "kernel" for f in profile.frames(rows[0])), "with its kernel stack")
check_conservation(profile, "stuck thread: ")

# The wait that begins before the window, ends in it, and the wait that begins in it and goes beyond.
recorder = Recorder("-p", str(stuck.pid)).attached()
stuck.work()
profile = recorder.profile()
left = [r for r in profile.rows(tid=stuck.pid) if r["censored"] == "left"]
right = [r for r in profile.rows(tid=stuck.pid) if r["censored"] == "right"]
ready, done = [line["at_ns"] for line in stuck.lines if "gate" in line]
naps = next(line for line in stuck.lines if "gate" not in line)
check(total(left, "count") == 1, f"one wait began before the window: {total(left) / 1e6:.3f} ms of it inside")
check(abs(profile.window["start_ns"] + total(left) - naps["start_ns"]) < 1e6,
      "it ends where the program began to work, within 1 ms")
check(total(right, "count") == 1 and abs(profile.window["end_ns"] - total(right) - done) < 1e6,
      f"one wait goes beyond the end: it began where the program says, within 1 ms; {total(right) / 1e6:.3f} ms of it inside")
whole = [r for r in profile.rows(tid=stuck.pid, cause={"clock_nanosleep"}) if r["censored"] == "no"]
check(total(whole, "count") == naps["waits"], f"{total(whole, 'count')} whole naps between, truth {naps['waits']}")
check_conservation(profile, "edges: ")
stuck.close()

# SIGKILL while the thread is off the CPU: the interval ends when the kernel lets it die.
forever = Gated("nap", "--forever", "--us", "50000")
recorder = Recorder("-p", str(forever.pid)).attached()
forever.release()
time.sleep(0.5)
forever.process.send_signal(signal.SIGKILL)
forever.process.wait()
time.sleep(0.2)
profile = recorder.profile()
times = profile.times(tid=forever.pid)
check(times["lost_ns"] == 0 and times["blocked_ns"] > 0.4e9, f"killed in its sleep: blocked {times['blocked_ns'] / 1e6:.1f} ms, "
      f"lost {times['lost_ns']} ns, end {[profile.threads[i]['end'] for i in profile.thread_indexes(tid=forever.pid)]}")
check_conservation(profile, "killed: ")
finish()
