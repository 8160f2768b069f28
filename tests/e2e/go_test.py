#!/usr/bin/env python3
"""A stripped Go program gets its names from its own table, and lines and inlined functions from its DWARF if that is left."""
import json
import os
import shutil

from dwell_e2e import check, finish, out, record_command, report, run, skip

if not shutil.which("go"):
    skip("go is not installed")

SOURCE = r"""package main

import "syscall"

var pause = syscall.Timespec{Nsec: 5000000}

func doze() {
	syscall.Nanosleep(&pause, nil)
}

//go:noinline
func inner() {
	doze()
}

//go:noinline
func outer() {
	inner()
}

func main() {
	for i := 0; i < 20; i++ {
		outer()
	}
}
"""
with open(out("nap.go"), "w") as f:
    f.write(SOURCE)


def build(name, flags):
    environment = {**os.environ, "HOME": out("."), "GOCACHE": out("cache"), "GO111MODULE": "off", "GOTOOLCHAIN": "local"}
    done = run(["go", "build", "-ldflags", flags, "-o", out(name), out("nap.go")], env=environment, timeout=200)
    if done.returncode != 0:
        skip(f"go build fails here: {done.stderr.strip()[-200:]}")
    return out(name)


def naps(profile):
    return [r for r in profile.rows(cause={"nanosleep"}) if any(f["function"].startswith("main.") for f in profile.frames(r))]


profile, _, _ = record_command([build("stripped", "-s -w")])
rows = naps(profile)
check(sum(r["count"] for r in rows) == 20, f"stripped: {sum(r['count'] for r in rows)} naps of 20 under main")
for row in rows:
    own = [f for f in profile.frames(row) if f["kind"] == "user"]
    names = [f["function"] for f in own]
    check([n for n in names if n.startswith("main.")][-3:] == ["main.inner", "main.outer", "main.main"], f"stripped: {names}")
    check({f["how"] for f in own} == {"gopclntab"}, f"stripped: named by {sorted({f['how'] for f in own})}")

profile, _, _ = record_command([build("whole", "")], name="whole.dwell")
frames = json.loads(report(out("whole.dwell"), "--json", "-", "--lines", "--inline").stdout)["frames"]
at = {f["function"]: (f.get("line"), f.get("inlined", False)) for f in frames}
lines = SOURCE.split("\n")
check(at.get("main.inner") == (lines.index("\tdoze()") + 1, False), f"with DWARF: main.inner at line {at.get('main.inner')}")
check(at.get("main.doze") == (lines.index("\tsyscall.Nanosleep(&pause, nil)") + 1, True), f"with DWARF: main.doze inlined {at.get('main.doze')}")
finish()
