#!/usr/bin/env python3
"""Every output carries the same totals; pprof has its units and ids; an empty recording is a valid file of each kind."""
import gzip
import json
import shutil

from dwell_e2e import DWELL, check, finish, load, out, program, report, run


def varint(data, at):
    value, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of each field of a protobuf message: ints, and bytes for length-delimited ones."""
    at, found = 0, []
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            size, at = varint(data, at)
            value, at = data[at:at + size], at + size
        else:
            raise ValueError(f"wire type {key & 7}")
        found.append((key >> 3, value))
    return found


def packed(data):
    at, values = 0, []
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


def check_pprof(profile, path, label):
    with open(path, "rb") as f:
        message = fields(gzip.decompress(f.read()))
    strings = [v.decode() for n, v in message if n == 6]
    check(strings[0] == "", f"{label}: the first string is empty")
    types = [tuple(strings[v] for _, v in fields(v)) for n, v in message if n == 1]
    check(("off_cpu", "nanoseconds") in types, f"{label}: {types}")
    samples = []
    for n, v in message:
        if n == 2:
            samples.append([x for k, part in fields(v) if k == 2 for x in (packed(part) if isinstance(part, bytes) else [part])])
    check(all(len(s) == len(types) for s in samples), f"{label}: {len(samples)} samples of {len(types)} values each")
    totals = profile.document["totals"]
    for kind, key in (("off_cpu", "off_cpu_ns"), ("blocked", "blocked_ns"), ("runqueue", "run_queue_ns"), ("run_queue", "run_queue_ns")):
        for at, (name, unit) in enumerate(types):
            if name == kind and unit == "nanoseconds":
                check(sum(s[at] for s in samples) == totals[key], f"{label}: {kind} sums to {totals[key]} ns as in JSON")
    for at, (name, unit) in enumerate(types):
        if unit == "count":
            check(sum(s[at] for s in samples) == totals["intervals"], f"{label}: {name} sums to {totals['intervals']}")
    duration = next((v for n, v in message if n == 10), 0)
    check(abs(duration - profile.window["length_ns"]) < 50e6, f"{label}: duration {duration / 1e9:.3f} s")
    mappings = [fields(v) for n, v in message if n == 3]
    ids = [strings[v] for m in mappings for k, v in m if k == 6]
    check(not samples or any(len(i) >= 32 for i in ids), f"{label}: {len(mappings)} mappings, build ids {[i[:8] for i in ids][:3]}")
    if shutil.which("pprof") or shutil.which("go"):
        tool = ["pprof"] if shutil.which("pprof") else ["go", "tool", "pprof"]
        done = run([*tool, "-raw", path])
        check(done.returncode == 0, f"{label}: pprof reads it")


done = run([DWELL, "record", "-o", out("s.dwell"), "--", program("sleeper"), "--seconds", "1"])
profile = load(out("s.dwell"))
totals = profile.document["totals"]
for option, name in (("--json", "s.json"), ("--folded", "s.folded"), ("--pprof", "s.pb.gz"), ("--html", "s.html")):
    done = report(out("s.dwell"), option, out(name))
    check(done.returncode == 0, f"report {option}: exit {done.returncode} {done.stderr.strip()[-200:] if done.returncode else ''}")
with open(out("s.json"), encoding="utf-8") as f:
    check(json.load(f) == profile.document, "--json FILE is the same document as --json -")
with open(out("s.folded"), encoding="utf-8") as f:
    folded = [line.rstrip("\n") for line in f if not line.startswith("#")]
check(sum(int(line.rsplit(" ", 1)[1]) for line in folded) == totals["off_cpu_ns"], f"folded: {len(folded)} lines, the same total")
check(folded == sorted(set(folded)), "folded: sorted and unique")
check(len({line.rsplit(" ", 1)[0] for line in folded}) == len(folded), "folded: one line per stack")
check_pprof(profile, out("s.pb.gz"), "pprof")
zero = [line for line in folded if line.endswith(" 0")]
check(not zero, f"folded: no line of 0 {zero[:1]}")
for key in ("format", "version", "host", "kernel", "cpus", "target", "options", "window", "totals", "losses", "warnings", "cost"):
    check(key in profile.document, f"JSON: has {key}")

# Everything filtered away: valid and empty.
done = run([DWELL, "record", "-o", out("e.dwell"), "--min", "1h", "--", program("nap"), "--waits", "3"])
check(done.returncode in (0, 4), f"a recording with no row: exit {done.returncode} {done.stderr.strip()[-200:]}")
empty = load(out("e.dwell"))
check(all(r["censored"] != "no" for r in empty.all_rows), f"{len(empty.all_rows)} rows: only waits that are longer than anybody saw")
for option, name in (("--folded", "e.folded"), ("--pprof", "e.pb.gz"), ("--html", "e.html")):
    done = report(out("e.dwell"), option, out(name))
    check(done.returncode == 0, f"empty {option}: exit {done.returncode}")
check_pprof(empty, out("e.pb.gz"), "empty pprof")
done = report(out("e.dwell"))
check(done.returncode == 0 and done.stdout.strip(), "the table of an empty recording says something")
finish()
