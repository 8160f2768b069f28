#!/usr/bin/env python3
"""JIT code gets its names from the map that belongs to the process; hostile maps neither hang nor mislead."""
from dwell_e2e import DWELL, check, finish, json_lines, load, out, program, record_command, run
from truth import check_conservation

NAME = "jit blob::run(int)"


def blob_names(profile, **which):
    return {f["name"] for r in profile.rows(cause={"clock_nanosleep"}, **which) for f in profile.frames(r) if f["how"] == "perf-map"}


profile, truth, _ = record_command([program("jit")])
for line in truth:
    names = blob_names(profile, tid=line["tid"])
    check(names == {NAME}, f"{line['name']}: {names}")
check_conservation(profile)

done = run(["unshare", "-m", "-p", "-f", "--mount-proc", "sh", "-c", f"mount -t tmpfs none /tmp && exec {program('jit')}"])
if done.returncode == 0:
    inside = ["unshare", "-m", "-p", "-f", "--mount-proc", "sh", "-c", f"mount --make-rprivate /; mount -t tmpfs none /tmp; {program('jit')}"]
    profile, truth, _ = record_command(inside, name="inside.dwell")
    check(blob_names(profile) == {NAME}, f"in a PID namespace with a /tmp of its own: {blob_names(profile)}")
else:
    print(f"no namespaces here: {done.stderr.strip()}")

for kind in ("fifo", "symlink", "endless", "none"):
    done = run([DWELL, "record", "-o", out("kind.dwell"), "--", program("jit"), "--map-kind", kind], timeout=25)
    check(done.returncode == 0, f"a map that is {kind}: exit {done.returncode} {done.stderr.strip()[-200:] if done.returncode else ''}")
    profile = load(out("kind.dwell"))
    naps = profile.rows(cause={"clock_nanosleep"})
    check(sum(r["count"] for r in naps) == sum(line["waits"] for line in json_lines(done.stdout)), f"a map that is {kind}: all naps are there")
    names = blob_names(profile)
    check(names <= {NAME}, f"a map that is {kind}: {names or 'no name'}; memory {profile.document['cost']['user_memory_bytes'] / 1e6:.0f} MB")
    frames = {f["name"] for r in naps for f in profile.frames(r)}
    check("called_by_blob" in frames and "call_blob" in frames, f"a map that is {kind}: the frames around the blob have their names")

profile, truth, _ = record_command([program("jit"), "--map", "</script><b>;x\x1b[31m\x7f" + "y" * 5000])
names = blob_names(profile)
check(len(names) == 1 and len(names.pop()) < 5000, "a hostile name is bounded")
finish()
