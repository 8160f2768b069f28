#!/usr/bin/env python3
"""A program of 400,000 functions that waits under 3,000 of them: named within 5 s, in bounded memory."""
import os
import time

from dwell_e2e import DWELL, ROOT, check, finish, json_lines, load, out, run

FUNCTIONS, USED = 400_000, 3_000
MAIN = r"""
#include "truth.h"
extern void (*const kUsed[])(void);
struct truth t;
void one_wait(void) { TIMED(&t, nap(100000)); KEEP_FRAME(); }
int main(void) {
  truth_start(&t, "clock_nanosleep");
  for (int i = 0; i < %d; i++) kUsed[i]();
  truth_print(&t);
  return 0;
}
""" % USED
step = FUNCTIONS // USED
with open(out("many.s"), "w", encoding="utf-8") as f:
    f.write(".text\n")
    for i in range(FUNCTIONS):
        f.write(f".type function_number_{i},@function\nfunction_number_{i}:\npush %rbp\nmov %rsp,%rbp\ncall one_wait\npop %rbp\nret\n"
                f".size function_number_{i},.-function_number_{i}\n")
    f.write(".section .data.rel.ro,\"aw\"\n.globl kUsed\nkUsed:\n" + "".join(f".quad function_number_{i * step}\n" for i in range(USED)))
    f.write(".section .note.GNU-stack,\"\",@progbits\n")
with open(out("main.c"), "w", encoding="utf-8") as f:
    f.write(MAIN)
started = time.monotonic()
done = run(["cc", "-D_GNU_SOURCE", "-O2", "-fno-omit-frame-pointer", "-I", os.path.join(ROOT, "tests/programs"), "-o", out("many"),
            out("main.c"), out("many.s"), "-lpthread"], timeout=120)
check(done.returncode == 0, f"built in {time.monotonic() - started:.1f} s {done.stderr[:300]}")
done = run([DWELL, "record", "-o", out("many.dwell"), "--", out("many")], timeout=60)
truth = json_lines(done.stdout)[0]
ready = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
profile = load(out("many.dwell"))
rows = profile.rows(cause={"clock_nanosleep"})
names = {name for r in rows for name in profile.functions(r) if name.startswith("function_number_")}
wanted = {f"function_number_{i * step}" for i in range(USED)}
check(names == wanted, f"{len(names & wanted)} of {USED} functions by name, {len(names - wanted)} wrong")
took = (ready - profile.window["end_ns"]) / 1e9
check(took < 5, f"recorded and named {took:.2f} s after the window, {os.path.getsize(out('many')) / 1e6:.0f} MB of program")
memory = profile.document["cost"]["user_memory_bytes"]
check(memory < 600e6, f"peak memory {memory / 1e6:.0f} MB")
check(sum(r["count"] for r in rows) == truth["waits"], f"all {truth['waits']} waits")
finish()
