#!/usr/bin/env python3
"""The frames of Python programs stand in their stacks, each with its line, as the program itself says they are: nested
calls, methods, generators, coroutines, C code that calls back, threads, forks, other namespaces, threads asleep before."""
import os
import subprocess
import time

from dwell_e2e import DWELL, check, finish, json_lines, load, out, record_command, report, run, skip, total

PYTHON = "/usr/bin/python3.11"
if not os.path.exists(PYTHON):
    skip(f"{PYTHON} is not installed")

# `note` tells who called whom, by the interpreter's own account; the wait follows in the same line.
COMMON = r"""
import asyncio, json, os, re, select, sys, threading, time

def frames_from(frame):
    found = []
    while frame:
        found.append([frame.f_code.co_qualname, frame.f_code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return found

def say(what, tid, frames):
    os.write(1, (json.dumps({"what": what, "pid": os.getpid(), "tid": tid, "frames": frames}) + "\n").encode())

def note(what):
    say(what, threading.get_native_id(), frames_from(sys._getframe(1)))
"""

WAYS = COMMON + r"""
NAP = 0.004

def plain():
    note("plain"); time.sleep(NAP)

def outer():
    inner = lambda: plain()
    for i in range(3):
        inner()

class Worker:
    def run(self):
        self.wait()
    def wait(self):
        note("method"); time.sleep(NAP)
    @staticmethod
    def key(x):
        note("sorted"); time.sleep(NAP)
        return x

def generate():
    for i in range(2):
        note("generator"); time.sleep(NAP)
        yield i

def replace(match):
    note("re.sub"); time.sleep(NAP)
    return "x"

async def coroutine():
    note("coroutine"); time.sleep(NAP)

async def parent():
    await coroutine()

def größe():
    note("latin-1"); time.sleep(NAP)
def ждать():
    größe()
    note("ucs2"); time.sleep(NAP)
def 𝔰𝔫𝔞𝔨𝔢_𐌰():
    ждать()
    note("ucs4"); time.sleep(NAP)

def on_select(pipe):
    note("select"); select.select([pipe], [], [], NAP)

def on_lock(lock):
    note("lock"); lock.acquire(timeout=NAP)

def deep(n):
    if n:
        deep(n - 1)
    else:
        time.sleep(NAP)

MADE_UP = compile("note('exec'); time.sleep(NAP)", "<made up>", "exec")

def work():
    outer()
    Worker().run()
    sorted([2, 1], key=Worker.key)
    list(map(lambda x: x, generate()))
    re.sub("a", replace, "aba")
    asyncio.run(parent())
    𝔰𝔫𝔞𝔨𝔢_𐌰()
    exec(MADE_UP, globals())
    pipe, other = os.pipe()
    on_select(pipe)
    lock = threading.Lock()
    lock.acquire()
    on_lock(lock)

work()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
child = os.fork()
if child == 0:
    work()
    time.sleep(0.5)  # the recorder reads the last functions meanwhile
    os._exit(0)
os.waitpid(child, 0)
deep(300)
time.sleep(0.5)
"""

ASLEEP = COMMON + r"""
held = threading.Lock()
held.acquire()
def hold(n):
    if n:
        hold(n - 1)
    else:
        held.acquire()
def nap():
    while True:
        time.sleep(100)
def poll():
    select.select([0], [], [])
for target, arguments in (hold, (0,)), (hold, (7,)), (nap, ()), (poll, ()):
    threading.Thread(target=target, args=arguments, daemon=True).start()
time.sleep(0.3)
idents = {thread.ident: thread.native_id for thread in threading.enumerate()}
for ident, frame in sys._current_frames().items():
    if idents[ident] != os.getpid():
        say("asleep", idents[ident], frames_from(frame))
print(json.dumps({"gate": "ready"}), flush=True)
time.sleep(100)
"""


def write(name, text):
    path = out(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def python_frames(profile, row):
    return tuple((f["function"], f.get("file"), f.get("line")) for f in profile.frames(row) if f["how"] == "python")


def stand_before_eval(profile, row):
    """Python's frames are those that an eval frame follows, and each eval frame has some."""
    frames = [f for f in profile.frames(row) if f["kind"] == "user"]
    kinds = ["e" if f["function"] == "_PyEval_EvalFrameDefault" else "p" if f["how"] == "python" else "c" for f in frames]
    pairs = set(zip(kinds, kinds[1:]))
    return ("p", "c") not in pairs and ("c", "e") not in pairs and kinds[0] != "e" and kinds[-1] == "c"


CAUSES = {"select": {"select", "pselect6"}, "lock": {"futex"}}


def compare(profile, truth, label):
    """Each chain that the program tells stands in the recording, with all its lines, as often as it waited there."""
    waits = {}
    for line in truth:
        chain = tuple(tuple(f) for f in line["frames"])
        key = (line["pid"], line["tid"], line["what"], chain)
        waits[key] = waits.get(key, 0) + 1
    wrong = []
    for (pid, tid, what, chain), count in waits.items():
        causes = CAUSES.get(what, {"clock_nanosleep"})
        rows = [r for r in profile.rows(tid=tid, cause=causes) if python_frames(profile, r) == chain]
        if what == "lock":  # behind it the thread waits for the interpreter's own lock, in the same line
            rows = [r for r in rows if "PyThread_acquire_lock_timed" in profile.functions(r)]
        if total(rows, "count") != count or not all(stand_before_eval(profile, r) for r in rows):
            wrong.append((what, count, total(rows, "count"), chain[:3]))
    check(not wrong, f"{label}: {len(waits)} chains of {sum(waits.values())} waits, frames, lines and counts as the program says {wrong[:2]}")
    return waits


def healthy(profile, label):
    """What is amiss is of threads that were preempted inside the interpreter, of code that a module runs once, of the end."""
    waits, unmatched = profile.loss("python_stacks")[0], profile.loss("python_unmatched")[0]
    rows = [r for r in profile.all_rows if python_frames(profile, r)]
    unread = [r for r in rows if "[Python function not read]" in profile.functions(r)]
    share = total(unread) / max(total(rows), 1)
    check(unmatched <= 0.05 * waits and share < 0.1, f"{label}: {waits} waits with Python frames; {unmatched} stacks unmatched, "
          f"{profile.loss('python_names')[0]} frames unread in {100 * share:.2f} % of their time")


def the_ways():
    script = write("wäys/жди.py", WAYS)
    profile, truth, _ = record_command([PYTHON, "-X", "utf8", script], name="ways.dwell")
    waits = compare(profile, truth, "ways")
    whats = {what for _, _, what, _ in waits}
    check(len(whats) == 12 and len({(p, t) for p, t, _, _ in waits}) == 5, f"ways: {sorted(whats)}, in four threads and a fork")
    healthy(profile, "ways")
    deepest = max(len(python_frames(profile, r)) for r in profile.all_rows)
    cut = [r for r in profile.all_rows if len(python_frames(profile, r)) == 127]
    check(deepest == 127 and total(cut, "count") == profile.loss("python_cut")[0], f"deep: {deepest} frames of 301, counted as cut {profile.loss('python_cut')}")
    return script


def outputs(script):
    """Every output has the names."""
    path = out("ways.dwell")
    line = WAYS.split("\n").index('        note("method"); time.sleep(NAP)') + 1
    wait = f"Worker.wait ({os.path.basename(script)}:{line})"
    folded = report(path, "--folded", "-").stdout
    check(f"Worker.run ({os.path.basename(script)}:{line - 2});{wait};" in folded, f"folded: {wait} stands on the leaf's side")
    check(wait in report(path, "--top", "1000", "--frames", "200").stdout, "table: the same")
    health = report(path, "--stacks-health").stdout
    check(os.path.basename(script) not in health, "stacks-health: they are no frames of a walk")


def switched_off(script):
    profile, truth, _ = record_command([PYTHON, "-X", "utf8", script], "--no-python", name="off.dwell")
    found = sum(profile.loss(name)[0] for name in ("python_stacks", "python_no_thread"))
    check(truth and found == 0 and not any(f["how"] == "python" for f in profile.document["frames"]), "--no-python: none")
    check("python=no" in profile.document["options"], "and it is said")


def in_a_namespace(script):
    done = run(["unshare", "-pf", "true"])
    if done.returncode != 0:
        print(f"namespace: not shown, unshare fails here: {done.stderr.strip()}")
        return
    profile, truth, _ = record_command(["unshare", "-pf", PYTHON, "-X", "utf8", script], name="namespace.dwell")
    chains = {tuple(tuple(f) for f in line["frames"]) for line in truth}
    found = {python_frames(profile, r) for r in profile.all_rows}
    check(chains and chains <= found, f"namespace: {len(chains & found)} of {len(chains)} chains, where the threads know themselves by other numbers")
    healthy(profile, "namespace")


def asleep():
    script = write("asleep.py", ASLEEP)
    with subprocess.Popen([PYTHON, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as sleeper:
        said = []
        for line in sleeper.stdout:
            if '"gate"' in line:
                break
            said.append(line)
        truth = json_lines("".join(said))
        path = out("asleep.dwell")
        done = run([DWELL, "record", "-q", "-p", str(sleeper.pid), "-d", "500ms", "-o", path])
        check(done.returncode == 0, f"asleep: recorded {done.stderr[-300:]}")
        profile = load(path)
        sleeper.kill()
    for line in truth:
        chain = tuple(tuple(f) for f in line["frames"])
        rows = profile.rows(tid=line["tid"])
        same = [r for r in rows if python_frames(profile, r) == chain and stand_before_eval(profile, r)]
        check(len(rows) == 1 and same == rows, f"asleep since before: {len(chain)} frames of {chain[0]}: {python_frames(profile, rows[0])[:1] if rows else rows}")
    check(len(truth) == 4, f"asleep: {len(truth)} threads compared with sys._current_frames")
    healthy(profile, "asleep")


def not_python():
    """A process without an interpreter costs nothing and shows nothing of it."""
    profile, _, _ = record_command(["/bin/sh", "-c", "sleep 0.05"], name="shell.dwell")
    check(profile.loss("python_stacks")[0] == 0 and profile.loss("python_no_thread")[0] == 0, "a shell: no look for Python")


begun = time.monotonic()
ways = the_ways()
outputs(ways)
switched_off(ways)
in_a_namespace(ways)
asleep()
not_python()
print(f"{time.monotonic() - begun:.0f} s")
finish()
