#!/usr/bin/env python3
"""One thread per way to block: each thread's time and count are its own clock's and the kernel's."""
from dwell_e2e import check, finish, program, quietest, record_command, total
from truth import but_printing, check_conservation, compare_waits

CAUSES = {"nanosleep": {"clock_nanosleep"}, "poll": {"poll", "ppoll"}, "epoll": {"epoll_wait", "epoll_pwait"},
          "condition": {"futex"}, "mutex": {"futex"}, "pipe": {"read"}, "socket": {"recvfrom"},
          "fault": {"page fault"}, "vfork": {"vfork", "clone", "clone3"}}
CLASSES = {way: {"interruptible"} for way in CAUSES} | {"vfork": {"killable", "uninterruptible"},
                                                        "fault": {"interruptible", "killable"}}

THROUGH = {"fault": "handle_userfault"}


def story():
    profile, truth, _ = record_command([program("sleeper"), "--seconds", "4"])
    for line in truth:
        if "impossible" in line:
            print(f"this machine has no way to block by {line['what']}: {line['impossible']}")
        elif line["what"] in CAUSES:
            compare_waits(profile, line, CAUSES[line["what"]], CLASSES[line["what"]], through=THROUGH.get(line["what"]))
            rest = [r for r in profile.rows(tid=line["tid"], blocked=True) if r["cause"] not in CAUSES[line["what"]]]
            check(total(rest, "blocked_ns") < 20e6,
                  f"{line['what']}: blocked {total(rest) / 1e6:.3f} ms for other reasons {sorted({r['cause'] for r in rest})}")
        elif line["what"] == "fsync":
            # fsync works and waits in turn: the truth is its wall time less its CPU time, and the kernel's count of
            # voluntary switches, some of which may be in close(). CPU clocks of virtual machines are off by up to 11 us per wait.
            rows = profile.rows(tid=line["tid"], blocked=True)
            waited = line["sum_ns"] - line["cpu_ns"]
            untold = profile.loss("missed_switch_out")[0] if profile.times(tid=line["tid"])["lost_ns"] else 0
            check(line["voluntary"] - untold <= total(rows, "count") <= line["voluntary"] and set(r["class"] for r in rows) <= {"io", "uninterruptible"},
                  f"fsync: {total(rows, 'count')} waits, the kernel counted {line['voluntary']}, {untold} untold, "
                  f"classes {sorted({r['class'] for r in rows})}")
            inside = total(profile.rows(tid=line["tid"], cause={"fsync"}))
            preempted = total(profile.rows(tid=line["tid"], cause={"preempted"}))  # inside the calls or between them
            slack = 12_000 * (line["voluntary"] + line["involuntary"]) + 1_000_000
            check(-slack <= waited - inside <= preempted + slack,
                  f"fsync: {inside / 1e6:.3f} ms off the CPU, wall less CPU time {waited / 1e6:.3f} ms (preempted {preempted / 1e6:.3f} ms, "
                  f"allowed {slack / 1e6:.3f})", timing=True)
        elif line["name"] in ("preempted", "for_preempted"):
            rows = but_printing(profile.rows(tid=line["tid"], blocked=True))
            moved = [r for r in rows if r["cause"] == "sched_setaffinity"]
            check(total(rows, "blocked_ns") == total(moved, "blocked_ns"),
                  f"{line['name']}: blocked only while it was moved to its CPU ({total(moved) / 1e6:.3f} ms)")
    check_conservation(profile)


quietest(story)
finish()
