#!/usr/bin/env python3
"""Children, grandchildren and their threads are followed from their birth, or not at all with --no-follow."""
from dwell_e2e import Gated, Recorder, check, finish, program, record_command
from truth import check_conservation, compare_waits

profile, truth, _ = record_command([program("family")])
for line in truth:
    compare_waits(profile, line, {"clock_nanosleep"})
check(len({p["pid"] for p in profile.processes}) == 5, f"{len(profile.processes)} processes: parent, 3 children, a grandchild")
parents = {p["pid"]: p["parent_pid"] for p in profile.processes}
grandchild = next(line["pid"] for line in truth if line["what"] == "grandchild")
check(parents.get(parents.get(grandchild)) in parents, f"the grandchild's parent's parent is there: {parents}")
check_conservation(profile, "follow: ")

profile, _, _ = record_command([program("family")], "--no-follow")
check(len({p["pid"] for p in profile.processes}) == 1, f"--no-follow: {len(profile.processes)} process")
check_conservation(profile, "--no-follow: ")

family = Gated("family")
recorder = Recorder("-p", str(family.pid), "--follow").attached()
truth = family.work()
profile = recorder.profile()
family.close()
for line in truth:
    compare_waits(profile, line, {"clock_nanosleep"})
check_conservation(profile, "-p --follow: ")

profile, _, _ = record_command(["sh", "-c", "sleep 0.2 | cat; sh -c 'sleep 0.1'; true"])
names = {p["name"] for p in profile.processes}
check({"sh", "sleep", "cat"} <= names, f"a shell pipeline shows its programs: {sorted(names)}")
sleeps = sorted(r["total_ns"] for r in profile.rows(cause={"clock_nanosleep", "nanosleep"}))
check(len(sleeps) == 2 and 0 <= sleeps[0] - 0.1e9 < 15e6 and 0 <= sleeps[1] - 0.2e9 < 15e6,
      f"its sleeps: {[s / 1e6 for s in sleeps]} ms", timing=True)
finish()
