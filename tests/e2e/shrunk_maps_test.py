#!/usr/bin/env python3
"""Tables of 16 rows and 8 stacks: the overflow rows carry the time, and every thread still adds up."""
from dwell_e2e import check, finish, program, quietest, record_command, total
from truth import check_conservation, compare_waits

SMALL = ["--rows", "16", "--stacks", "8"]
profile, truth, _ = record_command([program("sleeper"), "--seconds", "2"], *SMALL)
check_conservation(profile, "sleeper in small tables: ")
overflow = [r for r in profile.all_rows if r["overflow"]]
lost = sum(t["times"]["overflow_ns"] for t in profile.threads)
check(lost > 0 and abs(total(overflow) - lost) <= 1000,
      f"{len(overflow)} overflow rows carry {total(overflow) / 1e6:.1f} ms, the threads' books say {lost / 1e6:.1f} ms")
losses = [x for x in profile.document["losses"] if x["loss"] and x["count"]]
check(losses, f"the losses are named: {[(x['name'], x['count']) for x in losses]}")
for line in (x for x in truth if x["what"] in ("nanosleep", "poll", "pipe", "socket")):
    times = profile.times(tid=line["tid"], name=line["name"])
    off = times["blocked_ns"] + times["run_queue_ns"]
    check(line["sum_ns"] * 0.999 - 1e6 <= off, f"{line['name']}: {off / 1e6:.2f} ms off the CPU, truth {line['sum_ns'] / 1e6:.2f} ms")


def full_store():
    profile, truth, _ = record_command([program("uniq"), "--bits", "10", "--us", "200"], "--stacks", "8")
    line = truth[-1]
    rows = compare_waits(profile, line, {"clock_nanosleep"})
    check_conservation(profile, "1024 stacks in a store of 8: ")
    named = [r for r in rows if any(f["kind"] == "placeholder" for f in profile.frames(r))]
    check(total(named) > 0.9 * total(rows), f"{total(named) / 1e6:.2f} of {total(rows) / 1e6:.2f} ms stand under a placeholder frame that "
          f"says why: {sorted({f['name'] for r in named for f in profile.frames(r) if f['kind'] == 'placeholder'})}")


quietest(full_store)
finish()
