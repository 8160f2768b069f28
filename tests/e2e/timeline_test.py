#!/usr/bin/env python3
"""`record --timeline`: every wait of a known program, once and in its place; what is missing is counted to the interval."""
import json
import os
import time

from dwell_e2e import DWELL, OUT, Recorder, check, finish, load, program, record_command, run, total
from truth import check_conservation


def length(interval):
    return interval["blocked_ns"] + interval["run_queue_ns"]


def by_thread(profile):
    """Intervals of each thread, by its index, as the document has them."""
    lists = {}
    for interval in profile.document["intervals"]:
        lists.setdefault(interval["thread"], []).append(interval)
    return lists


def check_places(profile, label):
    """In the window, in order, none inside another of the same thread."""
    window, wrong = profile.window, 0
    for index, intervals in by_thread(profile).items():
        at = max(window["start_ns"], profile.threads[index]["birth_ns"])
        for interval in intervals:
            wrong += interval["start_ns"] < at
            at = interval["start_ns"] + length(interval)
        wrong += at > window["end_ns"]
    check(wrong == 0, f"{label}: {len(profile.document['intervals'])} intervals, none out of its place {wrong or ''}")


def check_sums(profile, label):
    """Per thread, class, cause and stack: number and time of the intervals are those of the rows."""
    def key(x):
        return x["thread"], x["class"], x["cause"], x["stack"], x["censored"], x["state"]
    rows, sums = {}, {}
    for row in profile.all_rows:
        rows[key(row)] = (row["count"], row["blocked_ns"], row["run_queue_ns"], row["max_ns"])
    for interval in profile.document["intervals"]:
        count, blocked, run_queue, longest = sums.get(key(interval), (0, 0, 0, 0))
        sums[key(interval)] = (count + 1, blocked + interval["blocked_ns"], run_queue + interval["run_queue_ns"],
                               max(longest, length(interval)))
    check(rows == sums, f"{label}: the intervals add up to each of {len(rows)} rows, to the nanosecond")


def naps():
    profile, truth, _ = record_command([program("nap"), "--us", "3000", "--waits", "150", "--threads", "3"], "--timeline")
    check(profile.document["timeline"] == {"min_ns": 0}, "the document says that it has a timeline of all")
    check_conservation(profile, "naps: ")
    check_places(profile, "naps")
    check_sums(profile, "naps")
    lists = by_thread(profile)
    for line in truth:
        (index,) = profile.thread_indexes(tid=line["tid"], name=line["name"])
        slept = [x for x in lists[index] if x["cause"] == "clock_nanosleep"]
        waits = min(line["waits"], line["voluntary"])
        # A thread that is preempted between setting its timer and leaving sleeps shorter by just that.
        before = [None, *lists[index]]
        naps = [length(x) + (length(b) if b and b["cause"] == "preempted" else 0)
                for b, x in zip(before, lists[index]) if x["cause"] == "clock_nanosleep"]
        check(len(slept) == waits, f"{line['name']}: {len(slept)} naps of 3 ms, {waits} by the program")
        # An interrupt or the host may take that time as well, once in a while.
        short = [max(0, 3_000_000 - ns) for ns in naps]
        check(sum(short) <= 10_000 * len(naps) and max(short) <= 50_000,
              f"{line['name']}: shorter than 3 ms by {sum(short) / len(naps) / 1e3:.2f} us in the mean, by {max(short) / 1e3:.1f} us at most")
        times = profile.threads[index]["times"]
        off = sum(times[k] for k in ("run_queue_ns", "blocked_ns", "censored_run_queue_ns", "censored_blocked_ns"))
        check(sum(map(length, lists[index])) == off and len(lists[index]) == times["intervals"],
              f"{line['name']}: {len(lists[index])} intervals sum to the thread's books, {off / 1e6:.3f} ms")


def minimum():
    profile, truth, _ = record_command([program("nap"), "--us", "4000", "--waits", "40"], "--timeline=2ms")
    short = [x for x in profile.document["intervals"] if length(x) < 2_000_000 and x["censored"] == "no"]
    slept = [x for x in profile.document["intervals"] if x["cause"] == "clock_nanosleep"]
    check(not short and len(slept) == min(truth[-1]["waits"], truth[-1]["voluntary"]),
          f"--timeline=2ms: {len(slept)} naps, no shorter interval but at the edges")
    check(total(profile.all_rows, "count") >= len(profile.document["intervals"]), "the rows have the short ones too")
    part = json.loads(run([DWELL, "report", "command.dwell", "--json", "-", "--cause", "clock_nanosleep"], cwd=OUT).stdout)
    check(len(part["intervals"]) == len(slept), "a part of the recording has its part of the timeline")


def losses(label, *options):
    """A program that waits a lot; what the timeline misses is counted."""
    profile, _, _ = record_command([program("ping_pong"), "--seconds", "1"], "--timeline", *options)
    sent, lost, dropped = (profile.loss(name)[0] for name in ("timeline_intervals", "timeline_ring_full", "timeline_limit"))
    kept = profile.document["intervals"]
    check(sent == total(profile.all_rows, "count"), f"{label}: {sent} intervals were long enough, the rows have as many")
    check(len(kept) + lost + dropped == sent, f"{label}: {len(kept)} kept + {lost} refused by the ring + {dropped} beyond the limit = {sent}")
    ns = sum(profile.loss(name)[1] for name in ("timeline_ring_full", "timeline_limit"))
    check(sum(map(length, kept)) + ns == profile.loss("timeline_intervals")[1] == total(profile.all_rows), f"{label}: and in nanoseconds")
    check_places(profile, label)
    check_conservation(profile, f"{label}: ")
    return len(kept), lost, dropped


def stolen():
    """Another reader takes the rings over in the middle."""
    recorder = Recorder("--timeline", "--", program("nap"), "--us", "2000", "--waits", "1200").attached()
    arrays = [x.split() for x in run([DWELL, "events", "--list"]).stdout.splitlines()]
    mine = [x[0] for x in arrays if x[1] == "timeline" and holds(recorder.process.pid, x[0])]
    check(len(mine) == 1, f"the recorder has one perf event array: {mine}")
    time.sleep(0.3)
    thief = run([DWELL, "events", mine[0], "--json", "--count", "20"])
    _, code, said = recorder.wait()
    profile = load(recorder.path)
    lost = profile.loss("timeline_ring_full")[0]
    check(code == 0 and lost >= 20, f"after `dwell events` took the rings, {lost} intervals are missing, and counted {said.strip()[-200:] if code else ''}")
    check(len(profile.document["intervals"]) + lost == profile.loss("timeline_intervals")[0] == total(profile.all_rows, "count"),
          f"{len(profile.document['intervals'])} kept + {lost} = all; exit of the other {thief.returncode}")


def holds(pid, map_id):
    """Whether a process has a descriptor of this map."""
    for name in os.listdir(f"/proc/{pid}/fdinfo"):
        with open(f"/proc/{pid}/fdinfo/{name}", encoding="utf-8") as f:
            if f"map_id:\t{map_id}\n" in f.read():
                return True
    return False


def off_by_default():
    profile, _, _ = record_command([program("nap"), "--waits", "5"])
    check(profile.document["timeline"] is None and profile.document["intervals"] == [], "without --timeline there is none")
    check(profile.loss("timeline_intervals") == (0, 0), "and the probe counted none")


naps()
minimum()
kept, _, dropped = losses("all of it")
check(dropped == 0, f"{kept} intervals in a second fit")
_, lost, _ = losses("a tiny ring", "--timeline-ring", "4096")
check(lost > 0, f"a ring of one page loses: {lost}")
_, _, dropped = losses("a small limit", "--timeline-intervals", "100")
check(dropped > 0, f"a limit of 100 drops: {dropped}")
stolen()
off_by_default()
finish()
