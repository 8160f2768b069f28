#!/usr/bin/env python3
"""In a pipe no progress line, no colour, no control byte; on a terminal progress; and never a browser without a display."""
import os
import pty
import re
import time

from dwell_e2e import DWELL, check, finish, out, program, run

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x9b]")
done = run([DWELL, "record", "-o", out("a.dwell"), "--", program("nap"), "--waits", "50"])
check(done.returncode == 0 and not CONTROL.search(done.stdout + done.stderr), f"record in a pipe: {(done.stdout + done.stderr)[-300:]!r}")
check(len(done.stderr.split("\n")) < 20, f"{len(done.stderr.splitlines())} lines on stderr")
lines = [line for line in done.stdout.split("\n") if line and not line.startswith("{")]
check(not lines, f"stdout is the command's own {lines[:2]}")
done = run([DWELL, "report", out("a.dwell")])
check(done.returncode == 0 and not CONTROL.search(done.stdout), "report in a pipe has no control byte")
check("nap" in done.stdout and "clock_nanosleep" in done.stdout and "inner" in done.stdout, "the table names the program, the cause and the function")
check(re.search(r"residual|conservation", done.stdout, re.I) is not None, "the table has the conservation line")
print(done.stdout[:1500])

# On a terminal: progress while it records.
pid, master = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.environ.pop("DISPLAY", None)
    os.execv(DWELL, [DWELL, "record", "-a", "-d", "2s", "-o", out("tty.dwell")])
seen, until = b"", time.monotonic() + 20
while time.monotonic() < until:
    try:
        piece = os.read(master, 4096)
    except OSError:
        break
    if not piece:
        break
    seen += piece
_, status = os.waitpid(pid, 0)
check(os.waitstatus_to_exitcode(status) == 0, f"record on a terminal exits {os.waitstatus_to_exitcode(status)}")
check(b"\r" in seen and seen.count(b"\r") >= 2, f"progress was shown: {seen[:200]!r}")

# A reader that goes away.
done = run(["sh", "-c", f"{DWELL} report {out('a.dwell')} | head -n 1"])
check(done.returncode == 0 and "Traceback" not in done.stderr and "terminate" not in done.stderr, f"a reader that goes away: {done.stderr.strip()[:200]!r}")

for arguments, code in ((["--help"], 0), (["--version"], 0), (["record", "--help"], 0), (["report", "--help"], 0), ([], 2), (["nonsense"], 2),
                        (["record"], 2), (["record", "--nonsense"], 2), (["report"], 2), (["record", "-a", "-p", "1"], 2)):
    done = run([DWELL, *arguments], timeout=10)
    check(done.returncode == code and (done.stdout + done.stderr).strip(), f"dwell {' '.join(arguments)}: exit {done.returncode}, expected {code}")
finish()
