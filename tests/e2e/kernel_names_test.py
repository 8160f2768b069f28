#!/usr/bin/env python3
"""kptr_restrict 0 and 1 give kernel names; 2 hides the addresses from everyone: times and user stacks stay, and it is said."""
from dwell_e2e import check, finish, program, record_command, skip
from truth import check_no_glue, compare_waits

KNOB = "/proc/sys/kernel/kptr_restrict"
with open(KNOB, encoding="utf-8") as f:
    before = f.read().strip()


def set_knob(value):
    with open(KNOB, "w", encoding="utf-8") as knob:
        knob.write(value)


try:
    set_knob(before)
except OSError as error:
    skip(f"{KNOB} cannot be written here: {error}")
try:
    for level in ("0", "1", "2"):
        set_knob(level)
        profile, truth, done = record_command([program("nap"), "--waits", "40"])
        rows = compare_waits(profile, truth[0], {"clock_nanosleep"})
        check(rows and all(profile.user_functions(r)[:3] == ["nap", "one_nap", "inner"] for r in rows),
              f"kptr_restrict {level}: the user's functions {profile.user_functions(rows[0])}")
        kernel = [f for r in rows for f in profile.frames(r) if f["kind"] == "kernel"]
        named = [f["function"] for f in kernel if f["how"] == "kallsyms"]
        if level == "2":
            said = done.stderr + " ".join(profile.document["warnings"]) + " ".join(x["reason"] + x["remedy"] for x in profile.document["unresolved"])
            check(not named, f"kptr_restrict 2: no kernel frame has a name {named[:2]}")
            check("kptr_restrict" in said, f"kptr_restrict 2: the reason is said: {said.strip()[:200]}")
            check(len({f["address"] for f in kernel}) <= 1 or len({f["name"] for f in kernel}) > 1, "kptr_restrict 2: frames are not all one symbol")
        else:
            check(any("nanosleep" in name for name in named), f"kptr_restrict {level}: kernel names {named[:4]}")
            check_no_glue(named, f"kptr_restrict {level}: ")
finally:
    set_knob(before)
finish()
