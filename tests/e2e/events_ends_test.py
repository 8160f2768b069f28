#!/usr/bin/env python3
"""`dwell events` ends cleanly whatever ends it, and says what is wrong with the map that it was told to read."""
import os
import subprocess
import time

from dwell_e2e import DWELL, check, finish, run
from event_source import BPF_FOLDER, CPUS, Events, Source, lines_of, with_source


def ends(source):
    events = Events("--pin", source.pin, "--count", "5")
    before = source.output(CPUS[0], 0, 0)["ok"]
    made = source.output(CPUS[0], 50, 40)["ok"] - before
    shown, said, code = events.end()
    heads = [line for line in shown.splitlines() if not line.startswith(" ")]
    check(code == 0 and len(heads) == 5 and all("40 bytes" in h or "44 bytes" in h for h in heads), f"--count 5: {len(heads)} records; {said.strip()}")
    check(f"received 5, not shown {made - 5}," in said, f"the others of {made} records are counted")

    started = time.monotonic()
    events = Events("--name", source.name, "--duration", "600ms", "--rate")
    _, said, code = events.end()
    check(code == 0 and 0.5 < time.monotonic() - started < 5, f"--duration: it ends by itself; {said.strip()}")

    reading, writing = os.pipe()
    head = subprocess.Popen(["head", "-1"], stdin=reading, stdout=subprocess.PIPE)
    events = Events(source.id, stdout=writing)
    os.close(reading)
    os.close(writing)
    source.output(CPUS[0], 1, 40)
    first = head.communicate(timeout=10)[0]
    said = events.process.communicate(timeout=10)[1]
    check(events.process.returncode == 0 and b"cpu" in first and "rror" not in said and "annot" not in said,
          f"`| head -1` ends it quietly, with no further record: exit {events.process.returncode}")

    reading, writing = os.pipe()
    events = Events(source.id, stdout=writing)
    source.output(CPUS[0], 3000, 400)
    time.sleep(0.2)
    _, said, code, seconds = events.stop()
    check(code == 0 and seconds < 3, f"Ctrl-C ends it although nobody reads its output: exit {code} after {seconds:.2f} s")
    os.close(reading)
    os.close(writing)


def rates(source):
    events = Events(source.id, "--rate", "--json")
    until, made = time.monotonic() + 2.3, 0
    first = source.output(CPUS[0], 0, 0)["ok"]
    while time.monotonic() < until:
        made = source.output(CPUS[0], 100, 40)["ok"] - first
        time.sleep(0.05)
    shown, _, code, _ = events.stop()
    told = lines_of(shown, "rate")
    seen = sum(c["records"] for line in told for c in line["cpus"])
    check(code == 0 and len(told) >= 2 and 0 < seen <= made, f"--rate: {len(told)} lines, {seen} of {made} records by the last of them")
    check(lines_of(shown, "statistics")[0]["received"] == made, f"the last line has all {made}")


def refusals(source):
    twin = Source(source.name)
    cases = (
        ("no map", 2, "--list", []),
        ("an id that no map has", 2, "4294967295", ["4294967295"]),
        ("another type", 2, "not a perf event array", [source.other_id]),
        ("two maps of one name", 2, f"{source.id}, {twin.id}", ["--name", source.name]),
        ("no map of the name", 2, "no BPF map", ["--name", "dwell_no_such"]),
        ("a path that is no pin", 2, "/etc/hostname", ["--pin", "/etc/hostname"]),
        ("a path that is not there", 2, "No such file", ["--pin", BPF_FOLDER + "/none"]),
    )
    for what, code, word, options in cases:
        done = run([DWELL, "events", *options])
        check(done.returncode == code and word in done.stderr and done.stdout == "", f"{what}: exit {done.returncode}, {done.stderr.strip()}")
    twin.close()
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"]
    reachable = os.access(DWELL, os.X_OK) and run([*nobody, DWELL, "--version"]).returncode == 0
    if reachable:
        done = run([*nobody, DWELL, "events", source.id])
        check(done.returncode == 3 and "CAP_" in done.stderr, f"without privileges: exit {done.returncode}, {done.stderr.strip()}")
    else:
        print("not shown here: the refusal of an unprivileged user, who cannot run the binary in this folder")


with_source(ends, rates, refusals)
finish()
