#!/usr/bin/env python3
"""Renamed threads and programs that become others: each time stands under the name that was true at that time."""
from dwell_e2e import check, finish, program, record_command, run, total
from truth import check_conservation, compare_waits


def story(label, *options):
    profile, truth, _ = record_command([program("identity"), "--ms", "300", *options])
    for line in truth:
        compare_waits(profile, line, {"clock_nanosleep"})
    for name, function in (("alpha", "as_alpha"), ("gamma", "as_gamma"), ("beta;x y", "as_beta"), ("proc_second", "after_exec")):
        rows = profile.rows(name=name, cause={"clock_nanosleep"})
        wrong = [profile.user_functions(r) for r in rows if function not in profile.functions(r)]
        check(rows and not wrong, f"{label}: {name} waited in {function} only {wrong[:1] or ''}" + ("" if rows else f"; there are {sorted({t['name'] for t in profile.threads})}"))
    second = profile.rows(name="proc_second")
    processes = {profile.threads[r["thread"]]["process"] for r in second}
    first = {profile.threads[r["thread"]]["process"] for r in profile.rows(name="alpha")}
    check(not processes & first, f"{label}: the program after exec is a process entry of its own")
    names = {profile.processes[i]["name"] for i in processes}
    check(names == {"proc_second"}, f"{label}: called {names}")
    before = {profile.processes[i]["name"] for i in first}
    check(before == {"proc_main"}, f"{label}: before it {before}")
    ends = {profile.threads[i]["end"] for i in profile.thread_indexes(name="alpha")}
    check("renamed" in ends, f"{label}: alpha's life ended as {ends}")
    check_conservation(profile, label + ": ")


story("exec by the leader")
story("exec by another thread", "--exec-from-thread")

loader = run(["sh", "-c", "ls /lib64/ld-linux-x86-64.so.2"]).stdout.strip()
profile, truth, _ = record_command([loader, program("nap"), "--waits", "10"])
entry = profile.processes[profile.threads[profile.thread_indexes(tid=truth[0]["tid"])[-1]]["process"]]
check("nap" in entry["command_line"] and total(profile.rows(function="inner")) > 0,
      f"started through the loader, the program and its functions show: {entry['name']}, {entry['command_line']}")
finish()
