"""Stacks of a stopped process as two programs see them that share no code with Dwell: gdb, and elfutils' libdwfl. And of
a Go program as its own run time sees them, which alone knows where it goes from one stack to another.

All give physical frames, leaf first, per thread: inlined functions and the tail calls that gdb makes up from debug
information are no frames. Of a frame that called, the place is the last byte of the call, one before the return
address; of the leaf and of a frame that a signal interrupted, it is the address itself."""
import os
import re
import shutil
import signal
import time

from address_space import state_of, threads_of
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
GO_PATIENCE_S = 30
COMMANDS = {"gdb": "gdb", "libdwfl": "eu-stack"}
PACKAGES = {"gdb": "gdb", "libdwfl": "elfutils"}


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


def go_stacks(pid):
    """Stacks of a Go program as its own run time tells them at its end: the environment has GOTRACEBACK=crash, standard
    error is a file. It names no threads: each is known by its stack pointer. A system call that is begun again is told
    by the address of its instruction, so the leaf's address is the kernel's."""
    said = os.readlink(f"/proc/{pid}/fd/2")
    threads = {}
    for tid in threads_of(pid):
        with open(f"/proc/{pid}/task/{tid}/syscall", encoding="utf-8") as f:
            sp, ip = f.read().split()[-2:]
        threads[int(sp, 16)] = (tid, int(ip, 16))
    os.kill(pid, signal.SIGQUIT)
    os.kill(pid, signal.SIGCONT)
    until = time.monotonic() + GO_PATIENCE_S
    while state_of(pid) not in "ZX" and time.monotonic() < until:
        time.sleep(0.05)
    with open(said, encoding="utf-8", errors="replace") as f:
        told = re.split(r"^PC=0x[0-9a-f]+ m=.*\n", f.read(), flags=re.M)[1:]
    stacks = {}
    for text in told:
        own = text.lstrip("\n").split("\n\n")[0]
        frames = [(int(sp, 16), int(pc, 16)) for sp, pc in re.findall(r" sp=0x([0-9a-f]+) pc=0x([0-9a-f]+)$", own, re.M)]
        if frames and frames[0][0] in threads:
            tid, ip = threads[frames[0][0]]
            stacks[tid] = [ip] + [pc - 1 for _, pc in frames[1:]]
    return stacks


WALKS = {"gdb": gdb_stacks, "libdwfl": libdwfl_stacks, "go": go_stacks}


def available():
    """The names of those that are installed."""
    return [which for which, command in COMMANDS.items() if shutil.which(command)]
