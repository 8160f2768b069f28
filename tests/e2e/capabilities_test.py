#!/usr/bin/env python3
"""Each set of capabilities records, or is refused within a second with the names of those that are missing."""
import json
import os
import re
import time

from dwell_e2e import DWELL, check, finish, out, program, run, skip

if run(["setpriv", "--bounding-set", "-all", "true"]).returncode != 0:
    skip("setpriv cannot lower the bounding set here")

# Capabilities kept, whether recording must work (None: either, but never in silence), capabilities the message must name.
MATRIX = [
    ("-all,+bpf,+perfmon", None, {"CAP_SYS_PTRACE"}),
    ("-all,+bpf,+perfmon,+sys_ptrace,+dac_read_search,+dac_override", True, set()),
    ("-all,+sys_admin,+sys_ptrace,+dac_override,+dac_read_search", True, set()),
    ("-all,+bpf", False, {"CAP_PERFMON"}),
    ("-all,+perfmon", False, {"CAP_BPF"}),
    ("-all", False, {"CAP_BPF", "CAP_PERFMON"}),
]


def programs_without_owner():
    """Ids of BPF programs that no process holds: what a tool leaves behind. Other recorders may run at the same time."""
    done = run(["bpftool", "prog", "list", "-j"])
    listed = json.loads(done.stdout) if done.returncode == 0 and done.stdout.strip() else []
    return {p["id"] for p in listed if not p.get("pids")}


before = programs_without_owner()
for kept, works, named in MATRIX:
    path = out("x.dwell")
    started = time.monotonic()
    done = run(["setpriv", "--bounding-set", kept, "--inh-caps", "-all", DWELL, "record", "-o", path, "--", program("nap"), "--waits", "20"], timeout=30)
    took = time.monotonic() - started
    recorded = done.returncode == 0
    if recorded:
        timeline = run(["setpriv", "--bounding-set", kept, "--inh-caps", "-all", DWELL, "record", "--timeline", "-o", out("t.dwell"), "--",
                        program("nap"), "--waits", "20"], timeout=30)
        document = json.loads(run([DWELL, "report", out("t.dwell"), "--json", "-"]).stdout) if timeline.returncode == 0 else {"intervals": []}
        naps = sum(x["cause"] == "clock_nanosleep" for x in document["intervals"])
        check(naps == 20, f"{kept}: with a timeline too, {naps} naps of 20 {timeline.stderr.strip()[-200:] if naps != 20 else ''}")
    if recorded:
        document = json.loads(run([DWELL, "report", path, "--json", "-"]).stdout)
        naps = sum(r["count"] for r in document["rows"] if r["cause"] == "clock_nanosleep")
        check(works is not False and naps == 20, f"{kept}: records, {naps} naps of 20; warnings {document['warnings'][:2]}")
        os.unlink(path)
        continue
    check(works is not True and done.returncode == 3 and took < 1.5, f"{kept}: exit {done.returncode} after {took:.2f} s")
    check(all(name in done.stderr for name in named) or works is None,
          f"{kept}: the message names {sorted(named)}: {re.sub(chr(10), ' / ', done.stderr.strip())[:300]}")
    check(not os.path.exists(path), f"{kept}: no file")
    doctor = run(["setpriv", "--bounding-set", kept, "--inh-caps", "-all", DWELL, "doctor"], timeout=10)
    check(doctor.returncode == 3 and all(name in doctor.stdout for name in named), f"{kept}: doctor exits {doctor.returncode} and names the same")
nobody = run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", DWELL, "record", "-a", "-d", "1s", "-o", "/tmp/never.dwell"], timeout=10)
check(nobody.returncode == 3 and "CAP_BPF" in nobody.stderr, f"an ordinary user: exit {nobody.returncode}: {nobody.stderr.strip()[:300]}")
# What other recorders of this machine load just now has no owner for a moment either.
deadline = time.monotonic() + 10
while (left := programs_without_owner() - before) and time.monotonic() < deadline:
    time.sleep(0.5)
check(not left, f"no BPF program is left in the kernel {left or ''}")
finish()
