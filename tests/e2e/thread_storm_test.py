#!/usr/bin/env python3
"""100,000 threads come and go; the thread after them is seen whole, and everything adds up."""
from dwell_e2e import check, finish, program, record_command, total
from truth import check_conservation, check_nothing_lost, compare_waits

profile, truth, _ = record_command([program("churn"), "--threads", "100000", "--parallel", "32", "--us", "10", "--survivor"],
                                   timeout=150)
storm, survivor = truth
compare_waits(profile, survivor, {"clock_nanosleep"})
check_conservation(profile)
naps = profile.rows(pid=storm["pid"], cause={"clock_nanosleep"})
short = sum(r["total_ns"] for r in naps if profile.threads[r["thread"]]["name"] != "survivor")
count = sum(r["count"] for r in naps if profile.threads[r["thread"]]["name"] != "survivor")
folded = sum(t["folded"] for t in profile.threads)
in_folded = sum(t["times"]["intervals"] for t in profile.threads if t["folded"])
overflow = sum(t["times"]["overflow_intervals"] for t in profile.threads)
print(f"{len(profile.threads)} thread entries, {folded} threads folded with {in_folded} intervals, {overflow} in overflow")
untold = profile.loss("missed_switch_out")[0]
check(count == storm["voluntary"] or (count < storm["voluntary"] and folded + overflow + untold > 0),
      f"{count} naps in rows of {storm['voluntary']}; the rest is named (departures untold: {untold})")
check(short <= storm["sum_ns"], f"the naps took {short / 1e9:.3f} s, by the threads' own clocks {storm['sum_ns'] / 1e9:.3f} s")
seen = sum(1 for t in profile.threads if not t["folded"]) + folded
check(seen >= storm["threads"], f"{seen} threads are in the books, {storm['threads']} lived")
longest = max(t["times"]["alive_ns"] for t in profile.threads if t["name"] != "survivor" and t["end"] == "exited" and not t["folded"])
check(longest <= profile.window["length_ns"], f"no life is longer than the window (longest {longest / 1e6:.1f} ms)")
check_nothing_lost(profile)
finish()
