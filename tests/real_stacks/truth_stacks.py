"""Stacks of a stopped process as two programs see them that share no code with Dwell: gdb, and elfutils' libdwfl.

Both give physical frames, leaf first, per thread: inlined functions and the tail calls that gdb makes up from debug
information are no frames. Of a frame that called, the place is the last byte of the call, one before the return
address; of the leaf and of a frame that a signal interrupted, it is the address itself."""
import re

from dwell_e2e import out, run

WALK = """python
def walk(thread):
    thread.switch()
    frame, exact = gdb.newest_frame(), True
    while frame:
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            exact = exact or frame.type() == gdb.SIGTRAMP_FRAME
            print("pc %x" % (frame.pc() - (not exact)))
            exact = frame.type() == gdb.SIGTRAMP_FRAME
        frame = frame.older()
for thread in gdb.selected_inferior().threads():
    print("tid %d" % thread.ptid[1])
    try:
        walk(thread)
    except gdb.error as error:
        print("ended: %s" % error)
end
"""
TIMEOUT_S = 120


def gdb_stacks(pid):
    script = out("walk_all.gdb")
    with open(script, "w", encoding="utf-8") as f:
        f.write(WALK)
    said = run(["gdb", "-p", str(pid), "-batch", "-nx", "-iex", "set debuginfod enabled off", "-iex", "set auto-load off",
                "-ex", "set backtrace past-main on", "-ex", "set backtrace limit unlimited", "-x", script], timeout=TIMEOUT_S).stdout
    return stacks_in(said, r"tid (\d+)$", r"pc ([0-9a-f]+)()$")


def libdwfl_stacks(pid):
    said = run(["eu-stack", "--raw", "--activation", "-n", "0", "-p", str(pid)], timeout=TIMEOUT_S).stdout
    return stacks_in(said, r"TID (\d+):$", r"#\d+ +0x([0-9a-f]+)( *- 1)?")


def stacks_in(text, thread_line, frame_line):
    """{tid: [ip]}"""
    stacks, tid = {}, None
    for line in text.split("\n"):
        if match := re.match(thread_line, line):
            tid = int(match[1])
            stacks[tid] = []
        elif tid is not None and (match := re.match(frame_line, line)):
            stacks[tid].append(int(match[1], 16) - bool(match[2]))
    return stacks
