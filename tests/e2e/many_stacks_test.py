#!/usr/bin/env python3
"""4,096 stacks keep their own times; of 200,000 all are in the report, or the report says what fell out."""
import re
import time

from dwell_e2e import check, finish, program, record_command, total
from truth import check_conservation

TURNS = re.compile(r"turn_([ab])$")

profile, truth, _ = record_command([program("uniq"), "--bits", "12", "--us", "200", "--print"])
line = next(x for x in truth if "tid" in x)
patterns = {x["pattern"]: x["ns"] for x in truth if "pattern" in x}
seen = {}
for row in profile.rows(tid=line["tid"], cause={"clock_nanosleep"}):
    word = "".join(TURNS.search(name).group(1) for name in profile.functions(row) if TURNS.search(name))
    seen[word] = seen.get(word, 0) + row["total_ns"]
wrong = [word for word in seen if word not in patterns]
check(not wrong, f"no stack mixes two patterns or holds half of one {wrong[:3] or ''}")
late = [(word, seen[word], ns) for word, ns in patterns.items() if word in seen and not ns * 0.9 - 15_000 <= seen[word] <= ns]
slow = total(profile.rows(tid=line["tid"], blocked=False))
check(len(late) * 10_000 <= slow + 10_000 * 40, f"each pattern has its own time ({len(late)} of {len(seen)} are more than 10 % short: "
      f"preempted for {slow / 1e6:.2f} ms) {late[:2]}")
check(len(seen) == len(patterns), f"{len(seen)} patterns of {len(patterns)} are there")
check_conservation(profile, "4096 stacks: ")

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
