"""Comparisons of a profile with a program's truth lines, and the invariants that every profile must keep."""
import re

from dwell_e2e import LONG_WAIT_SLACK, PROCESS_TIMES, SHORT_WAIT_SLACK_NS, check, total


def passes(profile, row, function):
    """Does the row's kernel stack hold this function? A row without a kernel stack may."""
    kernel = [f["function"] or f["name"] for f in profile.frames(row) if f["kind"] == "kernel"]
    return function is None or not kernel or function in kernel


def compare_waits(profile, line, causes, classes=None, waits=None, through=None):
    """One thread's waits under these causes: the count is exact, the time inside the program's clock and the slack.

    `through` is a kernel function that all of them pass; others of the same cause, which the program does not time (a
    page fault may wait for the lock of the page tables), are told. A timed wait also holds what preempted the thread between the two clock readings; that time stands in run-queue
    rows of the same thread and is no error of the wait's row.
    """
    rows = profile.rows(tid=line["tid"], name=line["name"], cause=causes, classes=classes, blocked=True)
    rows, rest = ([r for r in rows if wanted == passes(profile, r, through)] for wanted in (True, False))
    if rest:
        print(f"{line['name']}: {total(rest, 'count')} more waits, not through {through}: {[profile.functions(r)[:3] for r in rest]}")
    # A wait that was over before the thread had left the CPU is none: then the kernel counted fewer switches.
    waits = min(line["waits"], line["voluntary"]) if waits is None else waits
    got, count, truth = total(rows), total(rows, "count"), line["sum_ns"]
    # A kernel that hides some threads does not tell every switch; what it kept back is counted as lost, in ns too.
    untold, lost_ns = profile.loss("missed_switch_out")[0], profile.times(tid=line["tid"]).get("lost_ns", 0)
    preempted = total(profile.rows(tid=line["tid"], blocked=False))
    mean = truth / max(waits, 1)
    allowed = max(SHORT_WAIT_SLACK_NS * waits, LONG_WAIT_SLACK * truth if mean >= 5e6 else 0)
    short = truth - got - lost_ns
    label = f"{line['name']}/{line['what']} ({'/'.join(sorted(causes))})"
    check(waits - (untold if lost_ns else 0) <= count <= waits,
          f"{label}: {count} waits, truth {waits}" + (f" ({untold} departures untold, {lost_ns} ns lost)" if count != waits else ""))
    if got > truth:
        check(got - truth <= 1000 * waits, f"{label}: {(got - truth) / 1e3:.1f} us more than the program's own clock saw")
    said = (f"{label}: {got / 1e6:.3f} ms, truth {truth / 1e6:.3f} ms, short by {short / max(waits, 1) / 1e3:.2f} us per wait "
            f"(allowed {allowed / max(waits, 1) / 1e3:.2f}; preempted {preempted / 1e6:.3f} ms)")
    if short > allowed + preempted and short <= line["cpu_ns"] + preempted:
        # A loaded virtual machine: entering and leaving the system call itself took longer than the slack.
        said += f"; the thread's CPU clock ran {line['cpu_ns'] / max(waits, 1) / 1e3:.2f} us per wait"
        allowed = line["cpu_ns"]
    check(short <= allowed + preempted, said, timing=True)
    return rows


def but_printing(rows):
    """Without the waits to print: threads that end together write their truths to one file, and may wait at its lock."""
    return [r for r in rows if r["cause"] != "write"]


GLUE = re.compile(r"bpf_|__bpf|__traceiter|finish_task|perf_trace|trace_event|trace_call|arch_rethook|.*trampoline|preempt_schedule|"
                  r"(__)?schedule(_preempt_disabled|_idle|_rtlock|_loop)?(\.|$)")


def check_no_glue(names, label=""):
    """No frame of a probe, a trampoline or the switch itself; from the caller of schedule() on all are there."""
    glue = [name for name in names if GLUE.match(name)]
    check(not glue, f"{label}no frame of a probe or of the switch {glue[:2] or ''}")


def accounted(times):
    return sum(times[key] for key in PROCESS_TIMES)


def check_conservation(profile, label="", slack_ns=1000):
    """Every thread's parts add up to its time alive; its rows add up to its off-CPU time; lost time is named."""
    rows_of = {}
    for row in profile.all_rows:
        if not row["overflow"]:
            rows_of[row["thread"]] = rows_of.get(row["thread"], 0) + row["total_ns"]
    residuals, differences = [(0, "")], [(0, "")]
    for index, thread in enumerate(profile.threads):
        times, name = thread["times"], f"{thread['name']}[{thread['tid']}]"
        residual = max(abs(times["alive_ns"] - accounted(times)), abs(thread["residual_ns"]))
        off_cpu = accounted(times) - times["running_ns"] - times["lost_ns"]
        in_rows = rows_of.get(index, 0) + times["filtered_ns"] + times["overflow_ns"]
        residuals.append((residual, name))
        differences.append((abs(off_cpu - in_rows), name))
    for sentence, found in (("largest residual", residuals), ("rows + filtered + overflow = off-CPU time, largest difference", differences)):
        worst, name = max(found)
        wrong = sum(1 for ns, _ in found if ns > slack_ns)
        check(worst <= slack_ns, f"{label}{len(profile.threads)} threads, {sentence} {worst} ns"
              + (f" ({name}; {wrong} threads are off)" if wrong else ""))
    check_totals(profile, label)


def check_nothing_lost(profile, label=""):
    """No time is lost but what the kernel did not tell: single departures, in a counter of their own, and threads that
    it hides altogether, which are lost whole."""
    lost = sum(t["times"]["lost_ns"] for t in profile.threads)
    whole = [t for t in profile.threads if t["times"]["lost_ns"] and t["times"]["lost_ns"] >= t["times"]["alive_ns"]]
    in_whole = sum(t["times"]["lost_ns"] for t in whole)
    count, ns = profile.loss("missed_switch_out")
    slack = 1000 * max(1, len(profile.threads))
    names = sorted({t["name"] for t in whole})[:6]
    check(-slack <= lost - ns <= in_whole + slack, f"{label}lost: {lost} ns" + (
        f": {ns} ns in {count} departures untold; {in_whole} ns of {len(whole)} threads lost whole {names}" if lost or ns else ""))


def check_totals(profile, label=""):
    totals = profile.document["totals"]
    sums = {"intervals": total(profile.all_rows, "count"), "off_cpu_ns": total(profile.all_rows),
            "blocked_ns": total(profile.all_rows, "blocked_ns"), "run_queue_ns": total(profile.all_rows, "run_queue_ns")}
    wrong = {key: (totals[key], value) for key, value in sums.items() if totals[key] != value}
    check(not wrong, f"{label}totals are the sums of {len(profile.all_rows)} rows {wrong or ''}")
    length = profile.window["length_ns"]
    check(profile.window["end_ns"] - profile.window["start_ns"] == length, f"{label}window is {length / 1e9:.3f} s")
    impossible = [r for r in profile.all_rows if r["max_ns"] > length or r["total_ns"] != r["blocked_ns"] + r["run_queue_ns"]
                  or not 0 <= r["total_ns"] < 2 ** 63 or sum(n for _, n in r["histogram"]) != r["count"]]
    check(not impossible, f"{label}no row with an impossible time or histogram {impossible[:1] or ''}")


def schedstat_difference(thread):
    """(ns that the kernel's books of this thread are away, the slack for it, text). Both phases and their sum count.

    The kernel's books were read before the window and after it: they may hold as much more as lay outside.
    """
    stat, times = dict(thread["schedstat"]), thread["times"]
    outside = stat.pop("stretch_ns") - times["alive_ns"]
    ours = {"on_cpu_ns": times["running_ns"], "run_queue_ns": times["run_queue_ns"] + times["censored_run_queue_ns"]}
    both, their_both = sum(ours.values()), sum(stat.values())


    def away(ours_ns, theirs_ns):
        return max(ours_ns - theirs_ns, theirs_ns - ours_ns - outside, 0)
    off = max(away(ours[key], stat[key]) for key in ours)
    # Where a thread begins to run the kernel's books use a clock that was read on the way out of idle. That moves time
    # from run queue to running, by more than the slack on a loaded virtual machine; the sum of both stays.
    if away(both, their_both) < off <= 200_000 * (times["intervals"] + 1):
        off = away(both, their_both)
    switches = times["intervals"] + 1
    return off, 0.01 * their_both, switches, f"{thread['name']}[{thread['tid']}] {ours} against {stat} ({switches} switches)"


def check_schedstat(profile, label=""):
    """The kernel's own books for the same stretch: 1 % or 10 us per switch, whichever is more, for nine threads in ten;
    25 us per switch for every one: threads that mostly wake an idle CPU are charged for its way out of idle."""
    lives = {}
    for thread in profile.threads:
        lives[thread["tid"]] = lives.get(thread["tid"], 0) + 1
    # A kernel that hides what protected threads do hides the wake-ups that happen on their time as well: mostly of kernel
    # threads, by timers. Then those are told, and not judged.
    hides = any(l["count"] for l in profile.document["losses"] if l["name"] in ("missed_switch_in", "missed_switch_out"))
    # The kernel's books are of the thread, not of one of its lives under one name; and it may hide threads.
    whole = [t for t in profile.threads
             if t["schedstat"] and not t["folded"] and lives[t["tid"]] == 1 and not t["times"]["lost_ns"]]
    outside = [t["schedstat"]["stretch_ns"] - t["times"]["alive_ns"] for t in whole]
    check(min(outside, default=0) >= 0, f"{label}schedstat was read around the window, at most {max(outside, default=0) / 1e6:.3f} ms outside")
    found = [schedstat_difference(t) for t in whole if not (hides and t["kernel"])]
    if hides:
        apart = [text for off, share, switches, text in map(schedstat_difference, (t for t in whole if t["kernel"]))
                 if off > max(share, SHORT_WAIT_SLACK_NS * switches)]
        print(f"this kernel hides switches: {len(apart)} kernel threads disagree, not judged {apart[:2]}")
    near = [text for off, share, switches, text in found if off > max(share, SHORT_WAIT_SLACK_NS * switches)]
    far = [text for off, share, switches, text in found if off > max(share, 2.5 * SHORT_WAIT_SLACK_NS * switches)]
    check(len(near) <= 0.1 * len(found) and not far, f"{label}schedstat agrees for {len(found) - len(near)} of {len(found)} threads "
          f"{(far + near)[:3] or ''}", timing=True)
    return len(found)
