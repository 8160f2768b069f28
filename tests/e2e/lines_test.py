#!/usr/bin/env python3
"""`report --lines --inline`: every format tells the same lines and inlined functions, of the recorded build only, and no network is asked."""
import json
import os
import re
import shutil
import statistics
import time

from dwell_e2e import DWELL, check, finish, json_lines, out, report, run, skip

if not shutil.which("gcc"):
    skip("gcc is not installed")

SOURCE = r"""#include <stdio.h>
#include <time.h>
#define INLINE static inline __attribute__((always_inline))
INLINE void doze(void) {
  struct timespec t = {0, 5000000};
  nanosleep(&t, NULL);
}
INLINE void twice(void) {
  doze();
  doze();
}
__attribute__((noinline)) int holder(int n) {
  twice();
  return n + 1;
}
int main(void) {
  int n = 0;
  while (n < 20) n = holder(n);
  printf("{\"naps\": %d}\n", 2 * n);
  return 0;
}
"""
with open(out("lines.c"), "w") as f:
    f.write(SOURCE)
at = {name: number for number, line in enumerate(SOURCE.split("\n"), 1) for name, text in
      (("nap", "nanosleep(&t"), ("twice", "twice();"), ("loop", "n = holder(n)")) if text in line}
done = run(["gcc", "-g", "-O2", "-Wl,--build-id", "-o", out("lines"), out("lines.c")])
check(done.returncode == 0, f"gcc: {done.stderr.strip()[-300:]}")
done = run([DWELL, "record", "-o", out("lines.dwell"), "--", out("lines")])
check(done.returncode == 0, f"recorded: exit {done.returncode} {done.stderr.strip()[-200:]}")
naps = json_lines(done.stdout)[0]["naps"]


class Document:
    """The recording as `report --json OPTIONS` tells it."""

    def __init__(self, *options):
        self.document = json.loads(report(out("lines.dwell"), "--json", "-", *options).stdout)
        self.totals = self.document["totals"]

    def stacks(self):
        """(own frames, leaf first, as (function, line, inlined); count; whole?) of the naps: the first may be over before its tables are there."""
        frames, modules = self.document["frames"], self.document["modules"]
        for row in self.document["rows"]:
            if row["cause"] == "clock_nanosleep":
                walked = self.document["stacks"][row["stack"]]
                stack = [frames[i] for i in walked["frames"]]
                yield [(f["function"], f.get("line", 0), f.get("inlined", False)) for f in stack
                       if modules[f["module"]]["path"] == out("lines")], row["count"], walked["user_complete"]


def agrees(stack, wanted, whole):
    return stack == (wanted if whole else wanted[:len(stack)])


plain, lines, both = Document(), Document("--lines"), Document("--lines", "--inline")
wanted = [("doze", at["nap"], True), ("twice", None, True), ("holder", at["twice"], False), ("main", at["loop"], False)]
seen = {}
for stack, _, whole in both.stacks():
    places = [(name, line if name != "twice" else None, inlined) for name, line, inlined in stack if name in ("doze", "twice", "holder", "main")]
    check(agrees(places, wanted, whole), f"inlined functions and lines: {stack}{'' if whole else ', cut'}")
    for name, line, _ in stack:
        seen.setdefault(name, set()).add(line)
twice = {number for number, line in enumerate(SOURCE.split("\n"), 1) if line.strip() == "doze();"}
check(seen.get("twice") == twice, f"both calls have their own line: {seen.get('twice')} of {twice}")
counts = [(count, whole) for _, count, whole in both.stacks()]
cut = sum(count for count, whole in counts if not whole)
check(sum(count for count, _ in counts) == naps and cut <= 2, f"every nap is there once, {cut} of them cut")
for stack, _, whole in lines.stacks():
    check(agrees([f[:2] for f in stack][:2], [("holder", at["twice"]), ("main", at["loop"])], whole), f"lines alone: {stack[:2]}")
check(all(f[1:] == (0, False) for stack, _, _ in plain.stacks() for f in stack), "without the options there is neither")
check(plain.totals == lines.totals == both.totals, "the same nanoseconds in all three")

table = report(out("lines.dwell"), "--lines", "--inline").stdout
check(re.search(rf"doze \(lines\.c:{at['nap']}\) \(inlined\) .*lines", table), "table: the line and the mark of an inlined function")
folded = report(out("lines.dwell"), "--lines", "--inline", "--folded", "-").stdout
check(f"holder (lines.c:{at['twice']});twice (lines.c:" in folded and f"doze (lines.c:{at['nap']})_[i];" in folded, "folded: lines, and _[i]")
check(sum(int(line.rsplit(" ", 1)[1]) for line in folded.split("\n") if line) == plain.totals["off_cpu_ns"], "folded: the same total")
bare = Document("--lines", "--debug-dir", out("none")).document["warnings"]
check(any("libc" in w and "no debug information" in w for w in bare), f"modules without debug information are named: {bare[-1:]}")

# Another build at the path: nothing of it is believed.
run(["gcc", "-g", "-O1", "-DOTHER", "-Wl,--build-id", "-o", out("lines"), out("lines.c")])
other = Document("--lines", "--inline")
check(all(f[1:] == (0, False) for stack, _, _ in other.stacks() for f in stack), "another build gives no line")
check(any("another build of it is there now" in w for w in other.document["warnings"]), f"and it is said: {other.document['warnings'][-3:]}")

# A server that never answers: nobody asks it.
took = {"set": [], "unset": []}
for _ in range(3):
    for kind, environment in (("set", {"DEBUGINFOD_URLS": "http://127.0.0.1:9"}), ("unset", {})):
        started = time.monotonic()
        run([DWELL, "report", out("lines.dwell"), "--lines", "--inline"], env={**{k: v for k, v in os.environ.items() if k != "DEBUGINFOD_URLS"}, **environment})
        took[kind].append(time.monotonic() - started)
ratio = statistics.median(took["set"]) / statistics.median(took["unset"])
check(ratio < 3, f"DEBUGINFOD_URLS changes nothing: time x {ratio:.2f}")
finish()
