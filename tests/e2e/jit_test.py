#!/usr/bin/env python3
"""JIT code gets its names from the map that belongs to the process; hostile maps neither hang nor mislead."""
import glob
import json
import os
import shutil
import subprocess

from dwell_e2e import DWELL, Gated, Recorder, check, finish, json_lines, load, out, program, record_command, run
from truth import check_conservation

NAME = "jit blob::run(int)"


def blob_names(profile, how="perf-map", **which):
    return {f["name"] for r in profile.rows(cause={"clock_nanosleep"}, **which) for f in profile.frames(r) if f["how"] == how}


def forget_maps():
    """The program leaves its map behind, as JIT compilers do."""
    for path in glob.glob("/tmp/perf-*.map"):
        if not os.path.exists("/proc/" + path[len("/tmp/perf-"):-len(".map")]):
            os.unlink(path)


def check_names(label, profile, truth):
    for line in truth:
        names = blob_names(profile, name=line["name"])
        check(names == {NAME}, f"{label}: {line['name']}: {names}")
    check_conservation(profile, label + ": ")


profile, truth, _ = record_command([program("jit")])
check_names("a process that is over", profile, truth)

jit = Gated("jit")
recorder = Recorder("-p", str(jit.pid)).attached()
truth = jit.work()
check_names("a process that goes on", recorder.profile(), truth)
jit.close()

# In a PID namespace the map is called by the number inside, and lies in the /tmp inside.
inside = ["unshare", "-m", "-p", "-f", "--mount-proc", "sh", "-c", f"mount --make-rprivate /; mount -t tmpfs none /tmp; exec {program('jit')} --gate"]
process = subprocess.Popen(inside, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
ready = process.stdout.readline()
if "ready" in ready:
    recorder = Recorder("-a", name="inside.dwell").attached()
    process.stdin.write("g")
    process.stdin.flush()
    truth = [json.loads(process.stdout.readline()) for _ in range(2)]
    check_names("in namespaces of its own", recorder.profile(), truth)
else:
    print("no namespaces here")
process.stdin.close()
process.wait()
forget_maps()

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

for kind in ("dump", "dump-endless"):
    profile, truth, _ = record_command([program("jit"), "--map-kind", kind])
    for line in truth:
        names = blob_names(profile, "jitdump", name=line["name"])
        check(names == {NAME}, f"a jit{kind}: {line['name']}: {names}")
    check_conservation(profile, f"a jit{kind}: ")

# Node writes one; its functions are compiled code then, or copies of its interpreter that have their names.
if shutil.which("node"):
    script = "function napInJs(ms) { Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms); } for (let i = 0; i < 40; ++i) napInJs(5);"
    profile, _, _ = record_command(["node", "--perf-prof", "--perf-prof-delete-file", "--interpreted-frames-native-stack", "-e", script])
    dumped = [f["name"] for f in profile.document["frames"] if f["how"] == "jitdump"]
    check(any("napInJs" in name for name in dumped), f"node's jitdump names its functions: {len(dumped)} names, as {dumped[:3]}")
else:
    print("node is not installed: no jitdump of a real compiler here")

profile, truth, _ = record_command([program("jit"), "--map", "</script><b>;x\x1b[31m\x7f" + "y" * 50000])
names = blob_names(profile)
check(len(names) <= 1 and max(map(len, names), default=0) <= 8192 + 64, f"a hostile name is bounded: {[(len(n), n[:30]) for n in names]}")
forget_maps()
finish()
