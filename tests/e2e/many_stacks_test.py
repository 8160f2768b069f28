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
    seen = {}
    for row in profile.rows(tid=line["tid"], cause={"clock_nanosleep"}):
        word = "".join(TURNS.search(name).group(1) for name in profile.functions(row) if TURNS.search(name))
        seen[word] = seen.get(word, 0) + row["total_ns"]
    wrong = [word for word in seen if word not in patterns]
    check(not wrong, f"no stack mixes two patterns or holds half of one {wrong[:3] or ''}")
    # A nap is not longer than the program's clock saw, and not shorter than that less what the thread's CPU clock ran
    # around it: between the two lies the way into the system call and out of it, 10 us mostly, 30 us when the timer traps.
    elsewhere = total(profile.rows(tid=line["tid"], blocked=False)) + profile.times(tid=line["tid"]).get("lost_ns", 0)
    outside = [(word, ns, truth) for word, ns in seen.items() if word in patterns and
               not (truth := patterns[word])["ns"] - truth["cpu_ns"] - 1000 - elsewhere <= ns <= truth["ns"]]
    check(not outside, f"each of {len(seen)} stacks has the time of its nap: at most the clock's, at least that less the CPU clock's {outside[:2] or ''}", timing=True)
    short = sorted(truth["ns"] - seen[word] for word, truth in patterns.items() if word in seen)
    check(short[len(short) // 2] <= SHORT_WAIT_SLACK_NS + 0.05 * line["sum_ns"] / len(patterns),
          f"short of the clock: median {short[len(short) // 2] / 1e3:.1f} us, 99 % {short[len(short) * 99 // 100] / 1e3:.1f} us", timing=True)
    untold = profile.loss("missed_switch_out")[0]
    check(len(seen) >= line["voluntary"] - untold, f"{len(seen)} patterns of {len(patterns)} are there: {line['voluntary']} slept, {untold} untold")
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
