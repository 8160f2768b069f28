#!/usr/bin/env python3
"""Two processes on two CPUs wake each other a hundred thousand times: every wait is counted, none without its waking."""
import os

from dwell_e2e import check, finish, program, record_command, skip, total
from truth import check_conservation, check_schedstat

if os.cpu_count() < 2:
    skip("needs two CPUs")
for label, options in (("two CPUs", ["--child-cpu", "1"]), ("one CPU", [])):
    profile, truth, _ = record_command([program("ping_pong"), "--seconds", "1", *options])
    trips = truth[0]["round_trips"]
    for pid in {p["pid"] for p in profile.processes if p["name"] == "ping_pong"}:
        reads = total(profile.rows(pid=pid, cause={"read"}, blocked=True), "count")
        check(0.3 * trips <= reads <= trips + 8, f"{label}: a process waited {reads} times in read for {trips} round trips")
    missed = profile.loss("missed_wakeup")[0]
    check(missed == 0, f"{label}: {missed} waits ended without a waking")
    early = profile.loss("early_wakeup")[0]
    print(f"{label}: {truth[0]['ns_per_switch']} ns per switch while recorded, {early} wakings came before the switch-out")
    check(profile.loss("mismatch")[0] == 0, f"{label}: no kernel stack was taken for another")
    check_conservation(profile, label + ": ")
    check_schedstat(profile, label + ": ")
finish()
