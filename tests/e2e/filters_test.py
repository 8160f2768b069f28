#!/usr/bin/env python3
"""--state and --class pick rows by kernel state bits or by name; what they leave out is summed as filtered."""
from dwell_e2e import check, finish, program, record_command, total
from truth import check_conservation


def classes(profile):
    return {r["class"] for r in profile.all_rows}


def story(options, holds, sentence):
    profile, truth, _ = record_command([program("sleeper"), "--waits", "25"], *options)
    label = " ".join(options)
    check(holds(classes(profile)), f"{label}: {sentence}: {sorted(classes(profile))}")
    check_conservation(profile, label + ": ")
    filtered = sum(t["times"]["filtered_ns"] for t in profile.threads)
    check(filtered > 0, f"{label}: {filtered / 1e6:.1f} ms were filtered and are summed")
    return profile, truth


# Bit 0 is S. The kernel sleeps in S|FREEZABLE (0x2001) since 6.1: a tool that compares for equality sees nothing.
profile, truth = story(["--state", "1"], lambda c: "interruptible" in c and not c & {"killable", "preempted", "uninterruptible"},
                       "sleepers, frozen or not")
for way, cause in (("nanosleep", "clock_nanosleep"), ("condition", "futex"), ("socket", "recvfrom")):
    line = next(x for x in truth if x["what"] == way)
    count = total(profile.rows(tid=line["tid"], name=line["name"], cause={cause}), "count")
    check(count == line["waits"], f"--state 1 holds all {count} of {line['waits']} waits by {way}")
story(["--state", "S"], lambda c: "interruptible" in c and not c & {"killable", "preempted"}, "the same by its letter")
story(["--state", "D"], lambda c: "killable" in c and not c & {"interruptible", "preempted"}, "the parent of a vfork and the disk")
story(["--class", "preempted"], lambda c: c == {"preempted"}, "only what lost the CPU")
story(["--class", "interruptible,killable"], lambda c: c == {"interruptible", "killable"}, "two classes")
finish()
