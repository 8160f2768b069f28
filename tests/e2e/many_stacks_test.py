#!/usr/bin/env python3
"""4,096 stacks keep their own times; of 200,000 all are in the report, or the report says what fell out."""
import re
import time

from dwell_e2e import SHORT_WAIT_SLACK_NS, check, finish, program, quietest, record_command, total
from truth import check_conservation

TURNS = re.compile(r"turn_([ab])$")


def each_its_own_time():
    profile, truth, _ = record_command([program("uniq"), "--bits", "12", "--us", "200", "--print"])
    line = next(x for x in truth if "tid" in x)
    patterns = {x["pattern"]: x for x in truth if "pattern" in x}
    # Where this kernel did not tell that the thread came back, the end of the nap was worked out from CPU time, and the row says so.
    seen, worked_out = {}, {}
    for row in profile.rows(tid=line["tid"], cause={"clock_nanosleep"}):
        word = "".join(TURNS.search(name).group(1) for name in profile.functions(row) if TURNS.search(name))
        end_unseen = any(f["kind"] == "placeholder" and "not seen" in f["name"] for f in profile.frames(row))
        times = worked_out if end_unseen else seen
        times[word] = times.get(word, 0) + row["total_ns"]
    wrong = [word for word in [*seen, *worked_out] if word not in patterns]
    check(not wrong, f"no stack mixes two patterns or holds half of one {wrong[:3] or ''}")
    # A nap is not longer than the program's clock saw, and not shorter than that less what the thread's CPU clock ran
    # around it: between the two lies the way into the system call and out of it, 10 us mostly, 30 us when the timer traps.
    # What an interrupt or the host takes on that way is in no thread's CPU time: one nap in a thousand may have met one.
    elsewhere = total(profile.rows(tid=line["tid"], blocked=False)) + profile.times(tid=line["tid"]).get("lost_ns", 0)
    known = {word: (ns, patterns[word]) for word, ns in seen.items() if word in patterns}
    longer = {word: found for word, found in known.items() if found[0] > found[1]["ns"]}
    check(not longer, f"none of {len(known)} stacks has more than the time of its nap {list(longer.items())[:2] or ''}")
    shorter = {word: (ns, nap) for word, (ns, nap) in known.items() if ns < nap["ns"] - nap["cpu_ns"] - 1000 - elsewhere}
    far = {word: found for word, found in shorter.items() if found[0] < found[1]["ns"] - 1_000_000 - elsewhere}
    check(len(shorter) <= len(known) // 1000 and not far,
          f"{len(shorter)} have less than that without the thread's CPU time, none by a millisecond {list(shorter.items())[:2] or ''}",
          timing=not far)
    # ... and there the CPU clock does not know what the host took meanwhile.
    far = {word: (ns, patterns[word]["ns"]) for word, ns in worked_out.items() if abs(patterns[word]["ns"] - ns) > 1_000_000}
    check(len(worked_out) <= profile.loss("missed_switch_in")[0] and not far,
          f"{len(worked_out)} naps with an end that was worked out, as many as are counted at most, each within a millisecond {far or ''}")
    short = sorted(patterns[word]["ns"] - ns for word, ns in seen.items() if word in patterns)
    check(short[len(short) // 2] <= SHORT_WAIT_SLACK_NS + 0.05 * line["sum_ns"] / len(patterns),
          f"short of the clock: median {short[len(short) // 2] / 1e3:.1f} us, 99 % {short[len(short) * 99 // 100] / 1e3:.1f} us", timing=True)
    untold = profile.loss("missed_switch_out")[0]
    found = len({*seen, *worked_out})
    check(found >= line["voluntary"] - untold, f"{found} patterns of {len(patterns)} are there: {line['voluntary']} slept, {untold} untold")
    # Same registers at the leaf, same frame sizes, other callers: a walk that was taken for a repeated one would show here.
    check(profile.loss("stack_walk_mismatch")[0] == 0, f"{profile.loss('stack_walk_repeated')[0]} walks were taken for repeated ones, none wrongly")
    check_conservation(profile, "4096 stacks: ")


quietest(each_its_own_time)
started = time.monotonic()
profile, truth, done = record_command([program("uniq"), "--bits", "18", "--count", "200000", "--us", "20", "--threads", "8"],
                                      timeout=150, name="many.dwell")
naps = profile.rows(cause={"clock_nanosleep"})
stacks = {row["stack"] for row in naps}
last_end = max(line["end_ns"] for line in truth)
got, waits = total(naps, "count"), sum(line["voluntary"] for line in truth)
overflow_ns = sum(t["times"]["overflow_ns"] for t in profile.threads)
placeholder = sum(r["total_ns"] for r in naps if any(f["kind"] == "placeholder" for f in profile.frames(r)))
check(len(stacks) >= 200_000 or overflow_ns + placeholder > 0,
      f"{len(stacks)} distinct stacks of 200000; in overflow {overflow_ns / 1e6:.2f} ms, under placeholders {placeholder / 1e6:.2f} ms")
check(got + sum(t["times"]["overflow_intervals"] for t in profile.threads) >= waits, f"{got} naps in rows, {waits} slept, of {sum(line['waits'] for line in truth)}")
check_conservation(profile, "200000 stacks: ")
print(f"record, report and reading took {time.monotonic() - started:.1f} s for a run of "
      f"{profile.window['length_ns'] / 1e9:.1f} s; from the last nap to the end of the window "
      f"{(profile.window['end_ns'] - last_end) / 1e6:.1f} ms")
finish()
