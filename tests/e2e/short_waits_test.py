#!/usr/bin/env python3
"""Short waits, through libc and not, on a futex and across CPUs: within 10 us each, counts exact."""
from dwell_e2e import check, finish, program, quietest, record_command
from truth import check_conservation, compare_waits

SLEEP = {"clock_nanosleep", "nanosleep"}


def story(label, command, causes):
    profile, truth, _ = record_command(command)
    for line in truth:
        compare_waits(profile, line, causes.get(line["name"], SLEEP))
    check_conservation(profile, label + ": ")
    return profile


def naps(label, *options):
    quietest(lambda: story(label, [program("nap"), *options], {}))


naps("100 us naps", "--us", "100", "--waits", "5000")
naps("1 ms naps in 4 threads", "--us", "1000", "--waits", "500", "--threads", "4")
naps("naps through libc", "--us", "2000", "--waits", "300", "--libc")
quietest(lambda: story("hopping from CPU to CPU", [program("hop")], {}))
profile = quietest(lambda: story("a futex", [program("lock")], {"waiter": {"futex"}}))
for row in profile.rows(name="waiter", cause={"futex"}):
    check("wait_path" in profile.functions(row), f"the waiter waits in wait_path: {profile.user_functions(row)}")
finish()
