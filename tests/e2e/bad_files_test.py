#!/usr/bin/env python3
"""Full disks, missing folders, truncated, damaged and newer recordings: a clear error, never half a file."""
import os
import shutil

from dwell_e2e import DWELL, OUT, check, finish, load, out, program, report, run

done = run([DWELL, "record", "-o", out("good.dwell"), "--", program("uniq"), "--bits", "8", "--us", "50"])
good = out("good.dwell")
check(done.returncode == 0 and load(good).all_rows, "a good recording")
with open(good, "rb") as f:
    data = f.read()


def refuses(label, content):
    path = out("bad.dwell")
    with open(path, "wb") as f:
        f.write(content)
    done = report(path, "--json", "-", timeout=20)
    check(done.returncode in (1, 2) and path in done.stderr and not done.stdout.strip(),
          f"{label}: exit {done.returncode}, {done.stderr.strip()[:160]}")


refuses("an empty file", b"")
refuses("a text", b"hello, this is no recording\n")
for share in (0.01, 0.3, 0.5, 0.9, 0.999):
    refuses(f"the first {share:.1%} of a recording", data[:int(len(data) * share)])
refuses("a byte short", data[:-1])
for at in (5, len(data) // 3, len(data) // 2, len(data) - 20):
    refuses(f"a changed byte at {at}", data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1:])
refuses("zeroes", bytes(100_000))
done = report("/nonexistent.dwell")
check(done.returncode == 1 and "/nonexistent.dwell" in done.stderr and "No such file" in done.stderr, f"no file: {done.stderr.strip()[:160]}")
done = report(OUT)
check(done.returncode == 1, f"a folder: exit {done.returncode}, {done.stderr.strip()[:160]}")
os.mkfifo(out("fifo"))
done = report(out("fifo"), timeout=5)
check(done.returncode == 1, f"a FIFO: exit {done.returncode}, {done.stderr.strip()[:160]}")

done = run([DWELL, "record", "-o", "/nonexistent/x.dwell", "--", "sleep", "5"], timeout=4)
check(done.returncode == 1 and "/nonexistent/" in done.stderr, f"a folder that is not there is found before recording: {done.stderr.strip()[:160]}")

small = out("small")
os.mkdir(small)
if run(["mount", "-t", "tmpfs", "-o", "size=8k", "none", small]).returncode == 0:
    done = run([DWELL, "record", "-o", f"{small}/full.dwell", "--", program("uniq"), "--bits", "11", "--us", "10"])
    check(done.returncode == 1 and "No space left" in done.stderr, f"a full disk: exit {done.returncode}, {done.stderr.strip()[-200:]}")
    check(os.listdir(small) == [], f"it leaves nothing behind {os.listdir(small)}")
    for option in ("--html", "--json", "--folded", "--pprof"):
        target = f"{small}/x"
        done = report(good, option, target)
        whole = done.returncode == 0 and os.path.exists(target) and os.path.getsize(target) < 8192
        refused = done.returncode == 1 and "No space left" in done.stderr and not os.path.exists(target)
        check(whole or refused, f"a report {option} to a full disk: exit {done.returncode}, {os.listdir(small)}, {done.stderr.strip()[-120:]}")
        for left in os.listdir(small):
            os.unlink(f"{small}/{left}")
    run(["umount", small])
else:
    print("a full disk cannot be made here: mount was refused")

# An existing recording is replaced whole or kept.
shutil.copy(good, out("kept.dwell"))
run([DWELL, "record", "-o", out("kept.dwell"), "--", "/nonexistent/program"], timeout=10)
check(report(out("kept.dwell")).returncode == 0, "a recording that fails leaves the older file of that name whole")
done = run(["sh", "-c", f"{DWELL} report {good} --json - >/dev/full"], timeout=20)
check(done.returncode != 0, f"--json - to a full device: exit {done.returncode}, {done.stderr.strip()[-160:]}")
finish()
