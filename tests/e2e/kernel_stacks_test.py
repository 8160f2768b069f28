#!/usr/bin/env python3
"""Kernel stacks are whole from the caller of schedule() on, locks and timeouts of the scheduler's section included, and the
same whether the sleeping thread's words are read or the walk is made while it is current."""
from dwell_e2e import check, finish, program, record_command
from truth import check_no_glue

# The function that called schedule(), by the kernel's source; some kernels have one more step between.
LEAVES = {"nanosleep": {"do_nanosleep"}, "poll": {"schedule_hrtimeout_range", "schedule_hrtimeout_range_clock"},
          "pipe": {"pipe_read", "anon_pipe_read"}, "condition": {"futex_do_wait", "futex_wait_queue"}, "mutex": {"futex_do_wait", "futex_wait_queue"},
          "vfork": {"schedule_timeout"}}  # entered by an indirect call
CAUSES = {"nanosleep": {"clock_nanosleep"}, "poll": {"poll", "ppoll"}, "pipe": {"read"}, "condition": {"futex"}, "mutex": {"futex"},
          "vfork": {"vfork", "clone", "clone3"}}


def kernel_stacks(*options):
    """What the thread does -> its kernel stacks, leaf first. Placeholders (a switch that was hidden) are no stacks."""
    profile, truth, _ = record_command([program("sleeper"), "--seconds", "1"], *options)
    found = {}
    for line in truth:
        if line["what"] not in CAUSES:
            continue
        for row in profile.rows(tid=line["tid"], name=line["name"], cause=CAUSES[line["what"]]):
            names = tuple(f["function"] or f["name"] for f in profile.frames(row) if f["kind"] == "kernel")
            if names:
                found.setdefault(line["what"], set()).add(names)
    return found


read, walked = kernel_stacks(), kernel_stacks("--raw-tracepoints")
for what, leaves in LEAVES.items():
    stacks = read.get(what, set())
    check(stacks and all(names[0] in leaves for names in stacks), f"{what}: begins at {sorted({names[0] for names in stacks})}")
    check(stacks == walked.get(what), f"{what}: the same {len(stacks)} stacks both ways {sorted(stacks ^ walked.get(what, set()))[:2] or ''}")
    check_no_glue([name for names in stacks for name in names], f"{what}: ")
finish()
