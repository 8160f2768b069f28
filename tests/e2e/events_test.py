#!/usr/bin/env python3
"""`dwell events` shows what a stranger's program outputs: every record, in order, and every loss to the last one."""
import signal
import struct
import time

from dwell_e2e import DWELL, check, finish, run
from event_source import CPUS, Events, lines_of, with_source


def generated(record):
    """seq, cpu, size and time that the program wrote."""
    return struct.unpack("=QIIQ", bytes.fromhex(record["hex"])[:24])


def exact_records(source):
    events = Events(source.id, "--json")
    check("taken over" in events.warning and source.name in events.warning, f"it warns first: {events.warning.strip()}")
    truth = [source.output(cpu, 1200, 40) for cpu in CPUS for _ in range(2)][1::2]
    shown, said, code, seconds = events.stop()
    records, (statistics,) = lines_of(shown, "record"), lines_of(shown, "statistics")
    made = sum(t["ok"] for t in truth)
    check(code == 0 and seconds < 2, f"Ctrl-C: exit {code} after {seconds:.2f} s {said.strip()}")
    check(len(records) == statistics["received"] == made, f"{len(records)} records shown, {made} accepted by the kernel")
    for cpu in CPUS:
        mine = [generated(r) for r in records if r["cpu"] == cpu]
        check([m[0] for m in mine] == list(range(len(mine))) and all(m[1:3] == (cpu, 40) for m in mine),
              f"CPU {cpu}: {len(mine)} payloads are the program's, whole and in order")
    check([r["time_ns"] for r in records] == sorted(r["time_ns"] for r in records), "in order of time over all CPUs")
    check(all(0 <= r["time_ns"] - generated(r)[3] < 1e9 for r in records), "stamped by the clock of the program")
    check({r["tid"] for r in records} == {source.process.pid}, "they name the thread")


def exact_loss(source):
    before = {cpu: source.output(cpu, 0, 0) for cpu in CPUS}
    events = Events(source.id, "--json", "--ring", "4096")
    events.process.send_signal(signal.SIGSTOP)
    counts = (1000, 300)
    after = {cpu: source.output(cpu, counts[i % 2], 100) for i, cpu in enumerate(CPUS)}
    events.process.send_signal(signal.SIGCONT)
    time.sleep(0.3)
    shown, _, code, _ = events.stop(signal.SIGTERM)
    statistics = lines_of(shown, "statistics")[0]
    for i, cpu in enumerate(CPUS):
        refused = after[cpu]["no_space"] - before[cpu]["no_space"]
        mine = next(c for c in statistics["cpus"] if c["cpu"] == cpu)
        check(refused > 0 and mine["lost_exact"] == refused == mine["lost_reported"] + mine["lost_pending"],
              f"CPU {cpu}: {mine['lost_exact']} lost, {mine['lost_pending']} of them told by no record; the program counts {refused}")
        check(mine["samples"] + mine["lost_exact"] == counts[i % 2], f"CPU {cpu}: {mine['samples']} received + lost = {counts[i % 2]} output")
    check(code == 0 and statistics["received"] == sum(c["samples"] for c in statistics["cpus"]), "the sums are those of the CPUs")
    empty = source.output(CPUS[0], 10, 40)
    check(empty["no_slot"] - after[CPUS[0]]["no_slot"] == 10, "afterwards the slots are empty, as it warned")


def listed(source):
    lines = run([DWELL, "events", "--list"]).stdout.splitlines()
    check(any(line.split()[:3] == [source.id, source.name, "64"] for line in lines), "--list shows the map")


with_source(listed, exact_records, exact_loss)
finish()
