#!/usr/bin/env python3
"""Stacks without frame pointers are whole: through libc, callbacks, signal frames, realigned frames, vfork, from the
first wait of a process on. Python and a shell as well; compared with gdb where there is one."""
import re
import shutil
import subprocess
import sys
import time

from dwell_e2e import DWELL, check, finish, load, out, program, record_command, run, total
from truth import check_conservation, compare_waits

ROOTS = {"_start", "clone3", "__clone3", "clone", "__clone"}
LIBC_NAP = ["libc_nap"]
CHAINS = {
    "chain": LIBC_NAP + ["chain_inner", "chain_outer"],
    "callback": LIBC_NAP + ["callback_compare", None, "callback_sort"],
    "handler": LIBC_NAP + ["handler", None, "handler_raise"],
    "altstack": LIBC_NAP + ["handler", None, "handler_raise"],
    "restorer": LIBC_NAP + ["handler", "bare_restorer", None, "restorer_raise"],
    "realigned": LIBC_NAP + ["realigned_frame"],
    "switched": LIBC_NAP + ["bare_switch", "switch_stacks"],
    "descent": LIBC_NAP + ["descend"] * 60,
    "vfork": ["vfork_parent"],
}


def holds_chain(functions, chain):
    """The names follow each other, leaf first; None stands for frames of libc, any number."""
    names = [re.sub(r"\.(isra|constprop|part)\.\d+", "", f) for f in functions]
    at = names.index(chain[0]) if chain[0] in names else len(names)
    loose = False
    for wanted in chain:
        if wanted is None:
            loose = True
            continue
        while loose and at < len(names) and names[at] != wanted:
            at += 1
        if at >= len(names) or names[at] != wanted:
            return False
        at, loose = at + 1, False
    return True


def whole_share(profile, label, least):
    """The share of off-CPU time under stacks that reach a root, and how they were walked."""
    rows = [r for r in profile.all_rows if any(f["kind"] == "user" for f in profile.frames(r))]
    whole = total([r for r in rows if profile.stack(r)["user_complete"]])
    by_row, by_pointer = profile.loss("frames_by_row")[0], profile.loss("frames_by_pointer")[0]
    share = 100 * whole / max(total(rows), 1)
    check(share >= least, f"{label}: {share:.3f} % of the off-CPU time has a whole stack; "
          f"{by_row} steps by unwind data, {by_pointer} by frame pointer ({100 * by_pointer / max(by_row + by_pointer, 1):.2f} %)")


def the_ways(*options, cut_at_first=0):
    """`cut_at_first`: waits of a thread that may come before its process has tables, where none is walked again."""
    profile, truth, _ = record_command([program("frames"), "--waits", "20"], *options)
    for line in truth:
        rows = compare_waits(profile, line, {line["what"]})
        name = line["name"]
        cut = [r for r in rows if not profile.stack(r)["user_complete"]]
        check(total(cut, "count") <= cut_at_first, f"{name}: {total(cut, 'count')} waits cut")
        rows = [r for r in rows if r not in cut] or rows
        functions = profile.user_functions(rows[0])
        chain = CHAINS.get(name, CHAINS["chain"] + ["main_path", "main"])
        check(all(holds_chain(profile.user_functions(r), chain) for r in rows), f"{name}: {functions[:9]} of {len(functions)}")
        check(all(profile.user_functions(r)[-1] in ROOTS for r in rows), f"{name}: from its root, {functions[-1]}")
    whole_share(profile, "frames", 99.5)
    check_conservation(profile, "frames: ")


def repeats():
    """A thread that waits where it waited before is not walked again, and its stacks are those of the walks."""
    profile, truth, _ = record_command([program("nap"), "--us", "100", "--waits", "5000"])
    line = next(x for x in truth if "tid" in x)
    rows = profile.rows(tid=line["tid"], cause={"clock_nanosleep"})
    repeated, verified = profile.loss("stack_walk_repeated")[0], profile.loss("stack_walk_verified")[0]
    check(repeated >= 0.9 * total(rows, "count") and verified >= 3, f"{repeated} of {total(rows, 'count')} walks repeated the last one, {verified} walked all the same")
    check(profile.loss("stack_walk_mismatch")[0] == 0, "they came to the same stack")
    check(len({tuple(profile.user_functions(r)) for r in rows if profile.stack(r)["user_complete"]}) == 1, "all naps have one stack")


def without_tables():
    profile, _, _ = record_command([program("frames"), "--waits", "3"], "--unwind-rows", "0")
    rows = profile.rows(cause={"clock_nanosleep"})
    check(profile.loss("frames_by_row")[0] == 0, "--unwind-rows 0: frame pointers alone")
    check(not any("chain_outer" in profile.functions(r) for r in rows), "and they lead nowhere in this program")
    check(profile.loss("walk_no_tables")[0] > 0, "which is counted")


def a_table_too_small():
    profile, _, _ = record_command([program("frames"), "--waits", "3"], "--unwind-rows", "1")
    check(profile.rows(cause={"clock_nanosleep"}), "a recording with room for few rows works")


GDB_WALK = """python
frame = gdb.newest_frame()
while frame:
    if frame.type() != gdb.INLINE_FRAME: print("pc %x" % frame.pc())
    frame = frame.older()
end
"""


def gdb_addresses(pid):
    """Where the frames of the first thread are, leaf first, as gdb sees them; inlined ones are no frames."""
    script = out("walk.gdb")
    with open(script, "w", encoding="utf-8") as f:
        f.write(GDB_WALK)
    said = run(["gdb", "-p", str(pid), "-batch", "-nx", "-iex", "set debuginfod enabled off",
                "-ex", "set backtrace past-main on", "-x", script], timeout=60).stdout
    return [int(m, 16) for m in re.findall(r"^pc ([0-9a-f]+)$", said, re.M)]


def sleeping(command, label):
    """A sleeper that nobody here built, begun before the recording."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL) as sleeper:
        time.sleep(0.5)
        path = out(label + ".dwell")
        done = run([DWELL, "record", "-q", "-p", str(sleeper.pid), "-d", "1s", "-o", path])
        check(done.returncode == 0, f"{label}: recorded {done.stderr[-300:]}")
        profile = load(path)
        truth = gdb_addresses(sleeper.pid) if shutil.which("gdb") else None
        sleeper.kill()
    rows = sorted(profile.rows(pid=sleeper.pid), key=lambda r: -r["total_ns"])
    functions = profile.user_functions(rows[0])
    whole_share(profile, label, 99.5)
    check(functions[-1] == "_start", f"{label}: {len(functions)} frames from _start")
    if truth is None:
        print(f"{label}: not compared with gdb, which is not installed")
        return
    # Mapping moves code by whole pages: the place within the page is the same in the file and in memory.
    ours = [int(f["address"], 16) & 0xfff for f in profile.frames(rows[0]) if f["kind"] == "user" and f["how"] != "python"]
    check(ours == [pc & 0xfff for pc in truth], f"{label}: the same {len(truth)} frames as gdb finds")


the_ways()
the_ways("--raw-tracepoints", cut_at_first=1)
repeats()
without_tables()
a_table_too_small()
sleeping([sys.executable, "-c", "import time\ndef inner(): time.sleep(30)\ndef outer(): inner()\nouter()"], "python")
sleeping(["bash", "-c", "wait_here() { sleep 30; true; }; wait_here; true"], "bash")
finish()
