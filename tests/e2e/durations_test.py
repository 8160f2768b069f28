#!/usr/bin/env python3
"""--min and --max cut whole intervals by their length; what they cut is still summed; limits carry units."""
from dwell_e2e import DWELL, check, finish, program, record_command, run, total
from truth import check_conservation

NOMINAL_NS = {"f2": 2e6, "f20": 20e6, "f200": 200e6}
# The way into the wait and out of it is in the program's clock and not in the interval.
WAY_NS = 1e6


def story(limits, shortest=0, longest=float("inf")):
    """Each nap is kept or cut by the time that the program's clock saw. A nap that a preemption came before was shorter than that."""
    options = [word for limit in limits.items() for word in limit]
    profile, truth, _ = record_command([program("mixed")], *options)
    label = " ".join(options) or "no limit"
    lives = {line["what"]: line for line in truth if "what" in line}
    naps = {line["naps"]: line["ns"] for line in truth if "naps" in line}
    rows = profile.rows(cause={"clock_nanosleep"})
    for function, nominal_ns in NOMINAL_NS.items():
        found = total([r for r in rows if function in profile.functions(r)], "count")
        surely = sum(shortest <= ns - WAY_NS and ns <= longest for ns in naps[function])
        perhaps = sum(shortest <= ns and ns - WAY_NS <= longest for ns in naps[function])
        doubt = lives[function]["involuntary"]
        check(surely - doubt <= found <= perhaps + doubt,
              f"{label}: {found} naps of {function}, its clock says {surely} to {perhaps} (preempted {doubt} times)")
        if shortest <= nominal_ns <= longest:
            check(found > 0, f"{label}: {function} is there")
    times = profile.times(tid=lives["f2"]["tid"])
    cut = sum(ns for each in naps.values() for ns in each if not shortest <= ns <= longest)
    late_ns = max(ns - NOMINAL_NS[function] for function, each in naps.items() for ns in each)
    doubt_ns = 0.002 * cut + 20e6 + sum(line["involuntary"] for line in lives.values()) * late_ns
    check(abs(times["filtered_ns"] - cut) <= doubt_ns, f"{label}: filtered {times['filtered_ns'] / 1e6:.2f} ms in {times['filtered_intervals']} "
          f"intervals, truth {cut / 1e6:.2f} ms (allowed {doubt_ns / 1e6:.2f})")
    check_conservation(profile, label + ": ")
    return profile


story({})
profile = story({"--min": "10ms", "--max": "100ms"}, 10e6, 100e6)
said = " ".join(profile.document["options"])
check("min" in said and "max" in said, f"the report repeats the limits: {profile.document['options']}")
story({"--min": "10ms"}, shortest=10e6)
story({"--max": "100000us"}, longest=100e6)

for option, word in (("--min", "-1ms"), ("--max", "99999999999999999999999h"), ("--min", "abc"), ("--min", "10parsecs"),
                     ("--max", "1e400s"), ("-d", "-5s"), ("-d", "0x"), ("--rows", "-1"), ("--stacks", "0"),
                     ("--rows", "99999999999999999999"), ("--thread-ring", "-3"), ("--class", "sleepy"), ("--state", "purple")):
    done = run([DWELL, "record", f"{option}={word}" if option.startswith("--") else option + word, "--", "true"], timeout=10)
    check(done.returncode == 2 and word in done.stderr, f"{option} {word!r}: exit {done.returncode}, says: {done.stderr.strip()[:160]}")
finish()
