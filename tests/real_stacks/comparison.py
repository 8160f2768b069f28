"""One program's sleeping threads: Dwell's stacks of them beside those of gdb and libdwfl, frame by frame.

The threads sleep while they are recorded, twice: with unwind data, and by frame pointers alone. Then the processes are
stopped by a signal, which leaves their user registers as they are, and the two others walk them."""
import dataclasses
import os
import shutil
import signal
import subprocess
import time

import truth_stacks
from address_space import AddressSpace, processes_below, state_of, threads_of
from dwell_e2e import DWELL, Profile, load, out, run, total

WINDOW = "1s"
STOP_PATIENCE_S = 5


@dataclasses.dataclass
class Thread:
    pid: int
    tid: int
    name: str
    ours: list = dataclasses.field(default_factory=list)  # stacks of the window, longest waits first
    by_pointer: list = dataclasses.field(default_factory=list)  # those by frame pointers alone
    truths: dict = dataclasses.field(default_factory=dict)  # {"gdb": stack, "libdwfl": stack}

    def equals(self, which):
        return self.truths.get(which) in self.ours

    def is_equal(self):
        return any(self.equals(which) for which in self.truths)

    def is_equal_by_pointer(self):
        return any(stack in self.by_pointer for stack in self.truths.values())


@dataclasses.dataclass
class Comparison:
    threads: list
    whole: float  # percent of the off-CPU time, with unwind data
    whole_by_pointer: float

    def count(self, predicate):
        return sum(1 for thread in self.threads if predicate(thread))

    def mean_frames(self):
        """Of the longest wait of each thread: with unwind data, and by frame pointers alone."""
        return tuple(sum(len(s[0]) for s in stacks if s) / max(len(self.threads), 1)
                     for stacks in ([t.ours for t in self.threads], [t.by_pointer for t in self.threads]))

    def different(self):
        return [thread for thread in self.threads if not thread.is_equal()]


def record(pids, *options):
    path = out("real.dwell")
    done = run([DWELL, "record", "-q", "-p", ",".join(map(str, pids)), "-d", WINDOW, "-o", path, *options], timeout=120)
    if done.returncode != 0:
        raise RuntimeError(f"dwell record failed: {done.stderr.strip()[-500:]}")
    return load(path)


def stack_of(profile: Profile, row):
    """[(file, address in it)] of the user frames, leaf first; file "" where the code is in none. Dwell's addresses are
    those behind the call, also where a signal interrupted the caller (abi/off_cpu.h). Python's own have none."""
    stack = []
    for frame in profile.frames(row):
        if frame["kind"] != "user" or frame["how"] == "python":
            continue
        path = profile.document["modules"][frame["module"]]["path"]
        is_file = path.startswith("/") or path == "[vdso]"
        stack.append((path if is_file else "", int(frame["address"], 16) - bool(stack)))
    return stack


def stacks_by_thread(profile, pids):
    """{(pid, tid): [stack]}, and the share of off-CPU time under stacks that reach a root, in percent."""
    stacks, rows = {}, [r for pid in pids for r in profile.rows(pid=pid)]
    for row in sorted(rows, key=lambda r: -r["total_ns"]):
        thread = profile.threads[row["thread"]]
        known = stacks.setdefault((profile.processes[thread["process"]]["pid"], thread["tid"]), [])
        stack = stack_of(profile, row)
        if stack not in known:
            known.append(stack)
    whole = total([r for r in rows if profile.stack(r)["user_complete"]])
    return stacks, 100 * whole / max(total(rows), 1)


def read_truths(pid, threads, whose):
    space = AddressSpace(pid)
    for which in whose:
        for tid, stack in truth_stacks.WALKS[which](pid).items():
            if tid in threads and stack:
                threads[tid].truths[which] = [space.place(ip) for ip in stack]


def thread_name(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/comm", encoding="utf-8", errors="replace") as f:
        return f.read().strip()


def stop(pids):
    """Parents first, and one after the other: a child that stops sends its parent a signal, which shall find it stopped."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
        until = time.monotonic() + STOP_PATIENCE_S
        while state_of(pid) not in "TtZX" and time.monotonic() < until:
            time.sleep(0.002)


def compare_processes(whose):
    """`whose`: {pid: names of truth_stacks.WALKS}."""
    pids = list(whose)
    ours, whole = stacks_by_thread(record(pids), pids)
    by_pointer, whole_by_pointer = stacks_by_thread(record(pids, "--unwind-rows", "0"), pids)
    threads = []
    stop(pids)
    for pid in pids:
        of_process = {tid: Thread(pid, tid, thread_name(pid, tid), ours.get((pid, tid), []), by_pointer.get((pid, tid), []))
                      for tid in threads_of(pid)}
        read_truths(pid, of_process, whose[pid])
        threads += of_process.values()
    return Comparison(threads, whole, whole_by_pointer)


def end(started):
    """Ends the started processes and their descendants by pid."""
    for pid in {p for process in started for p in processes_below(process.pid)}:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    for process in started:
        process.wait(timeout=20)
        if process.stdin:
            process.stdin.close()


def compare(program, whose):
    """`whose`: which of truth_stacks.WALKS, beside the program's own."""
    folder = out(program.name)
    os.mkdir(folder)
    os.chmod(os.path.dirname(folder), 0o755)  # a server that runs as another user comes through
    started = program.start(folder)
    try:
        time.sleep(program.settle_s)
        walks = {pid: whose for process in started for pid in processes_below(process.pid)}
        if program.own_truth:
            walks[started[0].pid] = whose + [program.own_truth]
        return compare_processes(walks)
    finally:
        end(started)
        shutil.rmtree(folder, ignore_errors=True)
