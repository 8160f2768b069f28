#!/usr/bin/env python3
"""A stripped program gets its names from its debug file: by build id, by link, in .debug; never from a wrong one."""
import os
import re
import shutil

from dwell_e2e import check, finish, out, program, record_command, run, skip

if not shutil.which("objcopy"):
    skip("objcopy is not installed")
run(["objcopy", "--only-keep-debug", program("nap"), out("nap.debug")])
notes = run(["readelf", "-n", program("nap")]).stdout
build_id = re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)


def stripped(folder, link=True):
    os.makedirs(out(folder), exist_ok=True)
    path = os.path.join(out(folder), "nap")
    run(["objcopy", "--strip-all", *([f"--add-gnu-debuglink={out('nap.debug')}"] if link else []), program("nap"), path])
    return path


def functions(path):
    profile, _, _ = record_command([path, "--waits", "10"])
    rows = profile.rows(cause={"clock_nanosleep"})
    return profile, {f["function"] for r in rows for f in profile.frames(r) if f["kind"] == "user" and f["how"] == "debug-file"}


def expect_names(label, path):
    _, names = functions(path)
    check({"nap", "inner", "outer"} <= names, f"{label}: {sorted(names)}")


def expect_none(label, path):
    profile, names = functions(path)
    shown = [f["name"] for r in profile.rows(cause={"clock_nanosleep"}) for f in profile.frames(r) if f["kind"] == "user"]
    check("inner" not in names and any("+0x" in name for name in shown), f"{label}: shown as {shown[:3]}")


expect_none("no debug file", stripped("none", link=False))
path = stripped("link")
shutil.copy(out("nap.debug"), out("link/nap.debug"))
expect_names("debug link beside the file", path)
path = stripped("dot")
os.makedirs(out("dot/.debug"))
shutil.copy(out("nap.debug"), out("dot/.debug/nap.debug"))
expect_names("debug link in .debug", path)

store = f"/usr/lib/debug/.build-id/{build_id[:2]}"
made = not os.path.isdir("/usr/lib/debug/.build-id")
os.makedirs(store, exist_ok=True)
by_id = f"{store}/{build_id[2:]}.debug"
try:
    shutil.copy(out("nap.debug"), by_id)
    expect_names("by build id", stripped("id", link=False))
finally:
    os.unlink(by_id)
    shutil.rmtree("/usr/lib/debug/.build-id") if made else None

path = stripped("crc")
run(["objcopy", "--only-keep-debug", program("uniq"), out("crc/nap.debug")])
expect_none("a debug file of another program", path)
finish()
