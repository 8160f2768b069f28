#!/usr/bin/env python3
"""--min and --max cut whole intervals by their length; what they cut is still summed; limits carry units."""
from dwell_e2e import DWELL, check, finish, program, record_command, run, total
from truth import check_conservation

FUNCTIONS = ["f2", "f20", "f200"]
COUNTS = {"f2": 100, "f20": 50, "f200": 10}


def story(options, expected):
    profile, truth, _ = record_command([program("mixed")], *options)
    naps = profile.rows(cause={"clock_nanosleep"})
    found = {f: total([r for r in naps if f in profile.functions(r)], "count") for f in FUNCTIONS}
    found = {f: n for f, n in found.items() if n}
    label = " ".join(options) or "no limit"
    check(found == {f: COUNTS[f] for f in expected}, f"{label}: {found}")
    times = profile.times(tid=truth[0]["tid"])
    cut = sum(line["sum_ns"] for line in truth if line["what"] not in expected)
    check(abs(times["filtered_ns"] - cut) <= 0.002 * cut + 20e6,
          f"{label}: filtered {times['filtered_ns'] / 1e6:.2f} ms in {times['filtered_intervals']} intervals, truth {cut / 1e6:.2f} ms")
    check_conservation(profile, label + ": ")
    return profile


story([], FUNCTIONS)
profile = story(["--min", "10ms", "--max", "100ms"], ["f20"])
said = " ".join(profile.document["options"])
check("min" in said and "max" in said, f"the report repeats the limits: {profile.document['options']}")
story(["--min", "10ms"], ["f20", "f200"])
story(["--max", "100000us"], ["f2", "f20"])

for option, word in (("--min", "-1ms"), ("--max", "99999999999999999999999h"), ("--min", "abc"), ("--min", "10parsecs"),
                     ("--max", "1e400s"), ("-d", "-5s"), ("-d", "0x"), ("--rows", "-1"), ("--stacks", "0"),
                     ("--rows", "99999999999999999999"), ("--thread-ring", "-3"), ("--class", "sleepy"), ("--state", "purple")):
    done = run([DWELL, "record", f"{option}={word}" if option.startswith("--") else option + word, "--", "true"], timeout=10)
    check(done.returncode == 2 and word in done.stderr, f"{option} {word!r}: exit {done.returncode}, says: {done.stderr.strip()[:160]}")
finish()
