"""The owner of a perf event array as truth, and `dwell events` reading it. For the stories events and events_ends."""
import json
import os
import signal
import subprocess
import time

from dwell_e2e import DWELL, program, skip

# No dot: a bpf file system reserves it.
BPF_FOLDER = f"/sys/fs/bpf/dwell_e2e_{os.getpid()}"
CPUS = sorted(os.sched_getaffinity(0))[:2]


class Source:
    """The owner of a perf event array; its counters are the truth."""

    def __init__(self, name, slots=64):
        self.name, self.pin = name, os.path.join(BPF_FOLDER, name + str(time.monotonic_ns()))
        self.process = subprocess.Popen([program("event_source"), program("event_source") + ".bpf.o", name, self.pin, str(slots)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            skip(f"the BPF program of the test cannot be loaded here (exit {self.process.wait()}); root is needed")
        answer = json.loads(line)
        self.id, self.other_id = str(answer["id"]), str(answer["other_id"])

    def output(self, cpu, count, size):
        """Counters of this CPU so far."""
        self.process.stdin.write(f"output {cpu} {count} {size}\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=10)
        self.process.stdout.close()


class Events:
    """`dwell events` in the background, reading when the constructor returns."""

    def __init__(self, *options, **popen):
        popen.setdefault("stdout", subprocess.PIPE)
        self.process = subprocess.Popen([DWELL, "events", *options], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, **popen)
        self.warning = self.process.stderr.readline()

    def stop(self, number=signal.SIGINT):
        asked = time.monotonic()
        self.process.send_signal(number)
        return *self.end(), time.monotonic() - asked

    def end(self):
        """What it printed on stdout and stderr, and the exit code."""
        shown, said = self.process.communicate(timeout=30)
        return shown, said, self.process.returncode


def lines_of(shown, kind):
    return [x for x in map(json.loads, shown.splitlines()) if x["type"] == kind]


def with_source(*parts):
    """Runs the parts of a story, each on the same source."""
    if not os.path.isdir("/sys/fs/bpf") or os.geteuid() != 0:
        skip("needs root and a bpf file system at /sys/fs/bpf")
    try:
        os.mkdir(BPF_FOLDER)
    except OSError as error:
        skip(f"no bpf file system at /sys/fs/bpf: {error}")
    try:
        source = Source(f"e2e_{os.getpid()}")
        for part in parts:
            part(source)
        source.close()
    finally:
        os.rmdir(BPF_FOLDER)
