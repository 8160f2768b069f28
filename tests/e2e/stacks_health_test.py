#!/usr/bin/env python3
"""The report says how far its user stacks can be trusted, binary by binary, and names the remedy: for code without unwind
data and frame pointers, for stripped binaries, and for Node.js without a perf map."""
import glob
import os
import shutil

from dwell_e2e import Gated, Recorder, check, finish, out, program, record_command, report

NODE_PROGRAM = """
const cell = new Int32Array(new SharedArrayBuffer(4));
function waitInScript(ms) { return Atomics.wait(cell, 0, 0, ms); }
function callInScript(ms) { return waitInScript(ms) + "x"; }
for (let i = 0; i < 80; i++) callInScript(25);
"""


def module_health(profile, name):
    """The entry of the module whose file has that name, with empty shares if there is none."""
    none = {"frames": 0, "off_cpu_ns": 0}
    for entry in profile.document["stack_health"]["modules"]:
        if os.path.basename(profile.document["modules"][entry["module"]]["path"]) == name:
            return entry
    return {"all": none, "unwind_data": none, "frame_pointer": none, "cut": none, "no_name": none,
            "cut_walk_end": "", "cut_remedy": "", "no_name_remedy": ""}


def without_anything():
    """No unwind data, no frame pointers, no symbols."""
    # A process that was there before: all its tables are in force from the start.
    process = Gated("bare")
    recorder = Recorder("-p", str(process.pid), name="bare.dwell").attached()
    process.work()
    profile = recorder.profile()
    process.close()
    bare, libc = module_health(profile, "bare"), module_health(profile, "libc.so.6")
    check(bare["cut"]["frames"] >= 1 and bare["cut"]["off_cpu_ns"] >= 250e6,
          f"bare: {bare['cut']['frames']} frames cut, {bare['cut']['off_cpu_ns'] / 1e6:.0f} ms")
    check(bare["cut_walk_end"] == "bad-pointer" and "-fno-omit-frame-pointer" in bare["cut_remedy"], f"its remedy: {bare['cut_remedy']}")
    check(bare["no_name"]["frames"] >= 1 and "dbgsym" in bare["no_name_remedy"], f"for its names: {bare['no_name_remedy']}")
    check(libc["unwind_data"]["frames"] >= 1 and libc["cut"]["frames"] == 0, f"libc: {libc['unwind_data']['frames']} frames by unwind data")
    text = report(out("bare.dwell")).stdout
    check("User stacks:" in text and "-fno-omit-frame-pointer" in text, "the table says it in short")
    whole = report(out("bare.dwell"), "--stacks-health").stdout
    line = next((words for words in whole.split("\n") if words.startswith("bare ")), "")
    check(line != "" and "What would help" in whole and "no unwind data and no frame pointer" in whole, f"--stacks-health: {line}")
    check("Longest waits" not in whole, "--stacks-health stands alone")
    both = report(out("bare.dwell"), "--stacks-health", "--table")
    check(both.returncode == 2, f"two texts for one standard output: exit {both.returncode} {both.stderr.strip()}")


def by_frame_pointer():
    profile, _, _ = record_command([program("bare_pointers")], name="pointers.dwell")
    bare = module_health(profile, "bare_pointers")
    check(bare["frame_pointer"]["frames"] >= 2 and bare["cut"]["frames"] == 0,
          f"bare_pointers: {bare['frame_pointer']['frames']} frames by frame pointer, {bare['cut']['frames']} cut")
    naps = profile.rows(function="bare_inner")
    marked = {f for r in naps for f in (profile.functions(r)[i] for i in profile.stack(r)["by_pointer"])}
    check({"bare_inner", "bare_outer"} <= marked, f"the stacks mark them: {sorted(marked)}")
    check(all(profile.stack(r)["walk_end"].startswith("root") for r in naps), "and are whole")


def record_node(*flags):
    name = f"node{len(flags)}.dwell"
    profile, _, _ = record_command([shutil.which("node"), *flags, "-e", NODE_PROGRAM], name=name)
    pid = next(p["pid"] for p in profile.processes if p["name"] in ("node", "MainThread"))
    hints = [h for h in profile.document["stack_health"]["hints"] if profile.processes[h["process"]]["pid"] == pid]
    return profile, hints, report(out(name)).stdout


def node():
    if shutil.which("node") is None:
        print("node is not installed: its hint is not tested here")
        return
    _, hints, text = record_node("--always-sparkplug")
    check(len(hints) == 1 and hints[0]["runtime"] == "Node.js" and "--perf-basic-prof" in hints[0]["remedy"],
          f"node without a map: {[(h['runtime'], h['no_name_ns'] / 1e6, h['remedy']) for h in hints]}")
    check(hints and hints[0]["no_name_ns"] >= 1e9, "with the time that it concerns")
    check("(Node.js)" in text and "--perf-basic-prof" in text, "the table names the flag")
    _, hints, _ = record_node("--perf-basic-prof", "--no-opt", "--no-sparkplug")
    check(len(hints) == 1 and "--interpreted-frames-native-stack" in hints[0]["remedy"] and hints[0]["no_name_ns"] >= 1e9,
          f"node with a map, interpreting: {[(h['no_name_ns'] / 1e6, h['remedy']) for h in hints]}")
    profile, hints, text = record_node("--perf-basic-prof", "--interpreted-frames-native-stack")
    check(hints == [] and "(Node.js)" not in text, f"node with both flags: no hint {hints}")
    names = {f["name"] for r in profile.rows(cause={"futex"}) for f in profile.frames(r) if f["how"] == "perf-map"}
    check(any("waitInScript" in n for n in names) and any("callInScript" in n for n in names), f"and names: {sorted(names)[:6]}")
    for path in glob.glob("/tmp/perf-*.map"):
        if not os.path.exists("/proc/" + path[len("/tmp/perf-"):-len(".map")]):
            os.unlink(path)


without_anything()
by_frame_pointer()
node()
finish()
