#!/usr/bin/env python3
"""Low limits on open files and locked memory: it starts all the same, or says which limit and how much it needs."""
import os

from dwell_e2e import DWELL, check, finish, load, out, program, run


def story(label, limits, word=None):
    path = out("x.dwell")
    done = run(["prlimit", *limits, DWELL, "record", "-o", path, "--", program("nap"), "--waits", "20"], timeout=30)
    if done.returncode == 0:
        profile = load(path)
        count = sum(r["count"] for r in profile.rows(cause={"clock_nanosleep"}))
        check(count == 20, f"{label}: works, {count} naps of 20")
        os.unlink(path)
    else:
        check(word is not None and word in done.stderr.lower() and not os.path.exists(path),
              f"{label}: exit {done.returncode}: {done.stderr.strip()[:300]}")


story("8 open files, raisable", ["--nofile=8:1024"])
story("8 open files and no more", ["--nofile=8:8"], "open files")
story("no locked memory", ["--memlock=0:0"])

# Ring sizes that the kernel would refuse are rounded up, or refused with the reason; never a bare EINVAL.
for size in ("4096", "5000", "12288", "1048577", "100", "2147483649"):
    done = run([DWELL, "record", "--thread-ring", size, "-o", out("r.dwell"), "--", program("nap"), "--waits", "5"], timeout=20)
    works = done.returncode == 0 and sum(r["count"] for r in load(out("r.dwell")).rows(cause={"clock_nanosleep"})) == 5
    check(works or (done.returncode == 2 and "--thread-ring" in done.stderr), f"--thread-ring {size}: exit {done.returncode} {done.stderr.strip()[:160]}")

starts = [run([DWELL, "record", "-o", out("s.dwell"), "--", program("nap"), "--us", "100", "--waits", "5"]).returncode for _ in range(10)]
check(starts == [0] * 10, f"it starts ten times of ten: {starts}")
finish()
