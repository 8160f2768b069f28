#!/usr/bin/env python3
"""Whole stacks: callers of functions that never return, handlers, depths around the limit, frames that lead nowhere."""
from dwell_e2e import check, finish, program, quietest, record_command
from truth import check_conservation, compare_waits

SLEEP = {"clock_nanosleep"}

profile, truth, _ = record_command([program("nap"), "--waits", "20"])
rows = profile.rows(tid=truth[0]["tid"], cause=SLEEP)
wanted = ["nap", "one_nap", "inner", "outer", "main"]
check(all(profile.user_functions(r)[:5] == wanted for r in rows), f"the whole chain, leaf first: {profile.user_functions(rows[0])}")
kernel = [f["name"] for f in profile.frames(rows[0]) if f["kind"] == "kernel"]
check(kernel and "nanosleep" in " ".join(kernel), f"above it the kernel's part: {kernel}")

profile, truth, _ = record_command([program("callers"), "noreturn"])
rows = profile.rows(tid=truth[0]["tid"], cause=SLEEP)
names = {name for r in rows for name in profile.user_functions(r)}
check("trap_a" in names and "innocent" not in names, f"the caller of a function that never returns is trap_a: {sorted(names)}")
check("blocker" in names, "and the function itself is there")

profile, truth, _ = record_command([program("callers"), "signal"])
rows = profile.rows(tid=truth[0]["tid"], cause=SLEEP)
check(rows and all("in_handler" in profile.functions(r) for r in rows), f"in a signal handler: {profile.user_functions(rows[0])}")


def depths():
    profile, truth, _ = record_command([program("deep")])
    for line in truth:
        depth = int(line["what"])
        rows = compare_waits(profile, line, SLEEP)
        names, stack = profile.user_functions(rows[0]), profile.stack(rows[0])
        levels = names.count("descend")
        if depth <= 100:
            check(levels == depth and f"root_{depth}" in names and not stack["truncated"], f"depth {depth}: whole, {levels} levels under its root")
        else:
            # The probe keeps 127 frames: what is deeper says that its root is missing.
            whole = levels == depth and f"root_{depth}" in names
            check(whole or (stack["truncated"] and levels >= 100 and names[0] == "nap"),
                  f"depth {depth}: {levels} levels, {'whole' if whole else 'marked as cut'}")
    check(profile.loss("mismatch")[0] == 0, "no kernel stack was taken for another")
    check_conservation(profile, "deep: ")


def frames_that_lead_nowhere():
    profile, truth, _ = record_command([program("broken_frames")])
    for line in truth:
        rows = compare_waits(profile, line, SLEEP)
        if not rows:
            continue
        stacks = {r["stack"] for r in rows}
        check(len(stacks) <= 4, f"{line['what']}: {len(stacks)} distinct stacks")
        check(not any(profile.stack(r)["user_complete"] for r in rows), f"{line['what']}: marked as incomplete")
        longest = max(len(profile.user_functions(r)) for r in rows)
        check(longest <= 3, f"{line['what']}: no garbage and no loop, {longest} user frames {profile.user_functions(rows[0])}")
        check(profile.user_functions(rows[0])[0] == "nap_with_frame", f"{line['what']}: the leaf is right")


quietest(depths)
quietest(frames_that_lead_nowhere)
finish()
