#!/usr/bin/env python3
"""No tracefs, a read-only one, no /sys at all: it works through BTF, or says in one message what to mount."""
import json
import os

from dwell_e2e import DWELL, check, finish, out, program, run, skip

if run(["unshare", "-m", "true"]).returncode != 0:
    skip("no private mount namespace can be made here")


def story(label, prepare, may_refuse=None):
    path = out("x.dwell")
    done = run(["unshare", "-m", "sh", "-c",
                f"mount --make-rprivate /; {prepare}; exec {DWELL} record -o {path} -- {program('nap')} --us 5000 --waits 60"], timeout=30)
    if done.returncode == 0:
        document = json.loads(run([DWELL, "report", path, "--json", "-"]).stdout)
        naps = [r for r in document["rows"] if r["cause"] == "clock_nanosleep"]
        check(sum(r["count"] for r in naps) == 60, f"{label}: works, {sum(r['count'] for r in naps)} naps of 60")
        os.unlink(path)
    else:
        check(may_refuse is not None and done.returncode == 3 and may_refuse in done.stderr and not os.path.exists(path),
              f"{label}: refused with exit {done.returncode}: {done.stderr.strip()[:400]}")


UNMOUNT = "umount /sys/kernel/tracing 2>/dev/null; umount /sys/kernel/debug/tracing 2>/dev/null; umount /sys/kernel/debug 2>/dev/null"
story("tracefs unmounted", f"{UNMOUNT}; true")
story("tracefs read-only", f"{UNMOUNT}; mount -t tracefs -o ro none /sys/kernel/tracing")
story("/sys hidden", f"{UNMOUNT}; mount -t tmpfs none /sys", may_refuse="BTF")
story("only BTF hidden", "mount -t tmpfs none /sys/kernel/btf", may_refuse="BTF")
done = run(["unshare", "-m", "sh", "-c", f"mount --make-rprivate /; mount -t tmpfs none /sys/kernel/btf; {DWELL} doctor"], timeout=20)
check(done.returncode == 3 and "BTF" in done.stdout + done.stderr, f"doctor says the same: exit {done.returncode}")
finish()
