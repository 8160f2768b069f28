#!/usr/bin/env python3
"""A seccomp profile that answers EPERM or ENOSYS to bpf(): refused at once, with a message that speaks of seccomp."""
import errno
import os
import time

from dwell_e2e import DWELL, check, finish, load, out, program, run

for error in (errno.EPERM, errno.ENOSYS):
    name = errno.errorcode[error]
    started = time.monotonic()
    done = run([program("without"), "bpf", str(error), DWELL, "record", "-o", out("x.dwell"), "--", program("nap"), "--waits", "3"], timeout=10)
    took = time.monotonic() - started
    check(done.returncode == 3 and took < 1.5 and not os.path.exists(out("x.dwell")), f"bpf() gives {name}: exit {done.returncode} after {took:.2f} s")
    check("seccomp" in done.stderr.lower(), f"bpf() gives {name}: {done.stderr.strip()[:300]}")
    doctor = run([program("without"), "bpf", str(error), DWELL, "doctor"], timeout=10)
    check(doctor.returncode == 3 and "seccomp" in doctor.stdout.lower(), f"doctor under it: exit {doctor.returncode}")

# perf events serve the names only: without them it records, and says what is missing, or refuses with the reason.
done = run([program("without"), "perf_event_open", str(errno.ENOSYS), DWELL, "record", "-o", out("y.dwell"), "--", program("nap"), "--waits", "10"], timeout=15)
if done.returncode == 0:
    profile = load(out("y.dwell"))
    count = sum(r["count"] for r in profile.rows(cause={"clock_nanosleep"}))
    check(count == 10, f"perf_event_open() gives ENOSYS: records {count} naps of 10; {done.stderr.strip()[:200]} {profile.document['warnings'][:1]}")
else:
    check(done.returncode == 3 and "perf_event_open" in done.stderr, f"perf_event_open() gives ENOSYS: {done.stderr.strip()[:300]}")
finish()
