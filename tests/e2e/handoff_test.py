#!/usr/bin/env python3
"""Two processes on two CPUs wake each other a hundred thousand times: every wait is counted, none without its waking."""
import os

from dwell_e2e import check, finish, program, record_command, skip, total
from truth import check_conservation, check_schedstat

if os.cpu_count() < 2:
    skip("needs two CPUs")
for label, options in (("two CPUs", ["--child-cpu", "1"]), ("one CPU", [])):
    profile, truth, _ = record_command([program("ping_pong"), "--seconds", "1", *options])
    trips, switches = (next(line for line in truth if line["what"] == what) for what in ("ping_pong", "switches"))
    untold = profile.loss("missed_switch_out")[0]
    # Not among the waits: the parent's start, which the recorder held back, and the child's last departure, as it ends.
    rows = [profile.rows(pid=pid, blocked=True) for pid in {p["pid"] for p in profile.processes if p["name"] == "ping_pong"}]
    waits = sorted(total(each, "count") for each in rows)
    truths = sorted((switches["parent"], switches["child"]))
    check(len(waits) == 2 and all(want - untold - 2 <= got <= want for got, want in zip(waits, truths)),
          f"{label}: the processes waited {waits} times, the kernel counted {truths} for {trips['round_trips']} round trips")
    others = [(r["cause"], r["count"]) for each in rows for r in each if r["cause"] != "read"]
    check(sum(count for _, count in others) <= 8, f"{label}: they waited in read, but for {others}")
    missed = profile.loss("missed_wakeup")[0]
    check(missed == 0, f"{label}: {missed} waits ended without a waking")
    early = profile.loss("early_wakeup")[0]
    print(f"{label}: {trips['ns_per_switch']} ns per switch while recorded, {early} wakings came before the switch-out")
    check(profile.loss("mismatch")[0] == 0, f"{label}: no kernel stack was taken for another")
    check_conservation(profile, label + ": ")
    check_schedstat(profile, label + ": ")
finish()
