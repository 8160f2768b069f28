#!/usr/bin/env python3
"""`record -- COMMAND` sees the command from its first instruction to its exit, and leaves its input and output alone."""
import os
import stat
import subprocess

from dwell_e2e import DWELL, check, finish, load, out, program, record_command, run, total
from truth import check_conservation

profile, truth, _ = record_command([program("nap"), "--us", "20000", "--waits", "10"])
line = truth[0]
check(profile.window["start_ns"] <= line["start_ns"] and line["end_ns"] <= profile.window["end_ns"], "its whole work lies in the window")
times = profile.times(tid=line["tid"])
ends = {profile.threads[i]["end"] for i in profile.thread_indexes(tid=line["tid"], name="nap")}
check("exited" in ends, f"it is known that it ended: {ends}")
check(times["alive_ns"] >= line["end_ns"] - line["start_ns"], f"alive for {times['alive_ns'] / 1e6:.2f} ms")
check(profile.window["end_ns"] - line["end_ns"] < 0.5e9,
      f"the window ends {(profile.window['end_ns'] - line['end_ns']) / 1e6:.1f} ms after the program's last word")
check({t["tid"] for t in profile.threads} == {line["tid"]}, f"nobody else is in the report: {[(t['name'], t['end']) for t in profile.threads]}")
check_conservation(profile)

done = run([DWELL, "record", "-o", out("io.dwell"), "--", "sh", "-c", "cat; echo to stderr >&2; exit 7"], input="through\n", stdin=None)
check("through\n" == done.stdout and "to stderr" in done.stderr, f"standard input, output and error pass through: {done.stdout!r}")
check(done.returncode in (0, 7), f"a command that fails: exit {done.returncode}; the recording is whole")
check(load(out("io.dwell")).all_rows != [], "and readable")

done = run([DWELL, "record", "-o", out("never.dwell"), "--", "/nonexistent/program"], timeout=10)
check(done.returncode in (1, 2) and "/nonexistent/program" in done.stderr and "No such file" in done.stderr,
      f"no such command: exit {done.returncode}, {done.stderr.strip()[:200]}")
check(not os.path.exists(out("never.dwell")), "and no file")
with open(out("not_executable"), "w", encoding="utf-8") as f:
    f.write("data")
done = run([DWELL, "record", "-o", out("never.dwell"), "--", out("not_executable")], timeout=10)
check(done.returncode in (1, 2) and "ermission" in done.stderr, f"a command that may not run: exit {done.returncode}, {done.stderr.strip()[:200]}")

# A command that dies by a signal, and one that is over before anything could wait.
profile, _, done = record_command(["sh", "-c", "kill -SEGV $$"])
check(profile.threads, f"a command that crashes is recorded: {[t['name'] for t in profile.threads]}")
done = run([DWELL, "record", "-o", out("short.dwell"), "--", "true"], timeout=10)
check(done.returncode in (0, 4), f"a command of a millisecond: exit {done.returncode}")
if done.returncode == 4:
    check(done.stderr.strip() != "", f"nothing recorded, and it says so: {done.stderr.strip()[:200]}")

# The whole machine, for as long as a command runs.
outsider = subprocess.Popen([program("nap"), "--us", "5000", "--forever"], stdout=subprocess.DEVNULL)
profile, truth, _ = record_command([program("nap"), "--us", "20000", "--waits", "20"], "-a")
outsider.kill()
outsider.wait()
line = truth[0]
check(profile.window["start_ns"] <= line["start_ns"] and profile.window["end_ns"] - line["end_ns"] < 0.5e9, "-a: the window holds the command's work and ends with it")
check(total(profile.rows(tid=line["tid"], name="nap", cause={"clock_nanosleep"}), "count") == 20, "-a: the command is in it")
check(profile.rows(tid=outsider.pid, cause={"clock_nanosleep"}) != [], "-a: and everybody else")
check_conservation(profile, "-a: ")
mode = stat.S_IMODE(os.stat(out("io.dwell")).st_mode)
check(mode & 0o077 == 0 or mode == 0o644, f"the recording's mode is {mode:o}")
finish()
