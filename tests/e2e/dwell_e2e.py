"""What the e2e stories share: run dwell on a program, read the JSON report, compare with the program's own truth.

A story is a script that calls the functions below and ends with finish(). Each check prints what it measured. A story
that cannot run here calls skip(reason): the script prints it and exits 77.
Environment: DWELL (the binary), PROGRAMS (the folder of the test programs); both are set by ctest.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
DWELL = os.environ.get("DWELL", os.path.join(ROOT, "build/dev/src/cli/dwell"))
PROGRAMS = os.environ.get("PROGRAMS", os.path.join(ROOT, "build/dev/tests/programs"))
OUT = tempfile.mkdtemp(prefix="dwell_e2e.")
os.environ["XDG_CACHE_HOME"] = os.path.join(OUT, "cache")  # of unwind tables: none of the machine's

RUN_QUEUE_CLASSES = {"preempted", "preempted-kernel", "yielded", "signal", "new", "runnable"}
PROCESS_TIMES = ("running_ns", "run_queue_ns", "blocked_ns", "censored_run_queue_ns", "censored_blocked_ns", "lost_ns")
# Slack against the program's clock around a wait: CONTRIBUTING.md, "Truth". A guest sets a looser one.
SHORT_WAIT_SLACK_NS = int(os.environ.get("SHORT_WAIT_SLACK_NS", 10_000))
LONG_WAIT_SLACK = float(os.environ.get("LONG_WAIT_SLACK", 0.001))

_failures = []


def skip(reason):
    print(f"SKIP: {reason}")
    shutil.rmtree(OUT, ignore_errors=True)
    sys.exit(77)


def check(holds, sentence, timing=False):
    """Prints the sentence as held or failed; a failed one fails the story at finish(). `timing`: see quietest()."""
    print(("ok      " if holds else "FAILED  ") + sentence, flush=True)
    if not holds:
        _failures.append((sentence, timing))
    return holds


def quietest(story, attempts=3):
    """Runs a part of a story again when only its timing checks failed: other load on the machine makes a wait look
    longer to the program's clock, never shorter, so an error of ours fails every attempt."""
    for attempt in range(1, attempts + 1):
        before = len(_failures)
        result = story()
        added = _failures[before:]
        if not added or attempt == attempts or not all(timing for _, timing in added):
            return result
        del _failures[before:]
        print(f"-- only timings were off; attempt {attempt + 1} of {attempts}", flush=True)


def finish():
    shutil.rmtree(OUT, ignore_errors=True)
    print(f"{len(_failures)} checks failed" if _failures else "all checks held")
    sys.exit(1 if _failures else 0)


def program(name):
    return os.path.join(PROGRAMS, name)


def out(name):
    """A path in this story's own folder, which is removed at the end."""
    return os.path.join(OUT, name)


def run(command, timeout=60, **options):
    """A finished process with text output. A timeout is a failed check, and the process is killed."""
    options.setdefault("stdin", subprocess.DEVNULL)
    try:
        return subprocess.run(command, capture_output=True, timeout=timeout, text=True, errors="replace", **options)
    except subprocess.TimeoutExpired as expired:
        check(False, f"ends within {timeout} s: {' '.join(command)}")
        return subprocess.CompletedProcess(command, 124, "", str(expired.stderr or ""))


def json_lines(text):
    """The truth: every line that is a JSON object."""
    return [json.loads(line) for line in text.split("\n") if line.startswith("{")]


class Profile:
    """The JSON report with its indexes resolved on demand."""

    def __init__(self, document):
        self.document = document
        self.window = document["window"]
        self.threads = document["threads"]
        self.processes = document["processes"]
        self.all_rows = document["rows"]

    def thread_indexes(self, tid=None, name=None, pid=None):
        return [i for i, t in enumerate(self.threads)
                if (tid is None or t["tid"] == tid) and (name is None or t["name"] == name)
                and (pid is None or self.processes[t["process"]]["pid"] == pid)]

    def rows(self, tid=None, name=None, pid=None, cause=None, classes=None, function=None, blocked=None):
        """Rows that meet every condition given; `cause` and `classes` are sets; `blocked` picks the kind of class."""
        threads = set(self.thread_indexes(tid, name, pid))
        return [r for r in self.all_rows
                if r["thread"] in threads and (cause is None or r["cause"] in cause)
                and (classes is None or r["class"] in classes)
                and (function is None or function in self.functions(r))
                and (blocked is None or blocked == (r["class"] not in RUN_QUEUE_CLASSES))]

    def functions(self, row):
        """Names of the row's frames, leaf first."""
        frames = self.document["frames"]
        return [frames[f]["function"] or frames[f]["name"] for f in self.stack(row)["frames"]]

    def stack(self, row):
        return self.document["stacks"][row["stack"]]

    def frames(self, row):
        return [self.document["frames"][f] for f in self.stack(row)["frames"]]

    def user_functions(self, row):
        return [f["function"] or f["name"] for f in self.frames(row) if f["kind"] == "user"]

    def loss(self, name_part):
        """Count and ns, summed over the counters whose name or meaning holds the word."""
        hits = [x for x in self.document["losses"] if name_part in (x["name"] + " " + x["meaning"]).lower()]
        return sum(x["count"] for x in hits), sum(x["ns"] or 0 for x in hits)

    def times(self, **which):
        """The times of all matching threads, summed."""
        total = {}
        for i in self.thread_indexes(**which):
            for key, value in self.threads[i]["times"].items():
                total[key] = total.get(key, 0) + value
        return total


def total(rows, field="total_ns"):
    return sum(r[field] for r in rows)


def report(path, *arguments, timeout=60):
    return run([DWELL, "report", path, *arguments], timeout=timeout)


def load(path):
    """The profile in a .dwell file. A report that fails ends the story."""
    done = report(path, "--json", "-", timeout=120)
    if done.returncode != 0:
        check(False, f"dwell report {path} exits 0, not {done.returncode}: {done.stderr.strip()[:500]}")
        finish()
    return Profile(json.loads(done.stdout))


def record_command(command, *options, timeout=90, name="command.dwell"):
    """`dwell record OPTIONS -- COMMAND`. Returns the profile, the truth lines and the finished process."""
    path = out(name)
    done = run([DWELL, "record", "-o", path, *options, "--", *command], timeout=timeout, cwd=OUT)
    if done.returncode != 0:
        check(False, f"dwell record -- {command[0]} exits 0, not {done.returncode}: {done.stderr.strip()[:800]}")
        finish()
    return load(path), json_lines(done.stdout), done


class Gated:
    """A program with --gate: it says that it is ready, works after release(), and says that it is done."""

    def __init__(self, name, *arguments, **options):
        self.process = subprocess.Popen([program(name), *arguments, "--gate"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, **options)
        self.pid = self.process.pid
        self.lines = []
        self.wait_for("ready")

    def wait_for(self, word):
        for line in self.process.stdout:
            self.lines += json_lines(line)
            if self.lines and self.lines[-1].get("gate") == word:
                return self.lines[-1]
        raise RuntimeError(f"the program ended before its gate '{word}'")

    def release(self):
        self.process.stdin.write("g")
        self.process.stdin.flush()

    def work(self):
        """Lets it work, waits until it is done. Returns the truth lines."""
        self.release()
        self.wait_for("done")
        return [line for line in self.lines if "gate" not in line]

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=20)
        self.process.stdout.close()


class Recorder:
    """`dwell record` in the background; attached() returns when its window has begun."""

    def __init__(self, *options, name="background.dwell", **popen):
        self.path = out(name)
        self.runs_command = "--" in options
        self.err = tempfile.NamedTemporaryFile("w", prefix="dwell_e2e.", suffix=".err")
        self.process = subprocess.Popen([DWELL, "record", "-o", self.path, *options], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=self.err, **popen)

    def said(self):
        with open(self.err.name, encoding="utf-8", errors="replace") as f:
            return f.read()

    def has_begun(self):
        """It says so, but where a command's own words shall stand alone: then the command is there."""
        if not self.runs_command:
            return self.said().startswith("recording ")
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="utf-8") as f:
            return any(os.readlink(f"/proc/{child}/exe") != os.path.realpath(DWELL) for child in f.read().split())

    def attached(self, seconds=60):
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.process.poll() is None:
            if self.has_begun():
                return self
            time.sleep(0.02)
        self.process.kill()
        self.process.wait()
        check(False, f"dwell record begins its window within {seconds} s: {self.said().strip()[:800]}")
        finish()

    def stop(self, with_signal=signal.SIGINT, timeout=30):
        """Returns (seconds that stopping took, exit code, what it printed on stderr)."""
        asked = time.monotonic()
        self.process.send_signal(with_signal)
        return self.wait(timeout, asked)

    def wait(self, timeout=60, since=None):
        since = since or time.monotonic()
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            check(False, f"dwell record ends within {timeout} s")
        return time.monotonic() - since, self.process.returncode, self.said()

    def profile(self):
        seconds, code, said = self.stop()
        check(code == 0, f"dwell record exits 0 after Ctrl-C ({seconds:.2f} s): {said.strip()[-300:] if code else ''}")
        return load(self.path)
