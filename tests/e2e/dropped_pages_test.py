#!/usr/bin/env python3
"""Pages of a stack that are not there: a walk at a switch never waits for one, it ends there and says so. The walk of a thread that sleeps already brings them back, and its stack is whole."""
import json
import shutil
import subprocess
import time

from dwell_e2e import DWELL, check, finish, load, out, record_command, run, skip

SOURCE = r"""#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

// A stack in shared memory: without its page tables' entries the bytes are still there.
enum { kStack = 1 << 20, kRoom = 16384, kDepth = 40, kPage = 4096, kKept = 65536 };
static char* stack;
static long nap_ns;
static double longest;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

// Not the pages at the end of the stack: the C library keeps the thread's own data there.
__attribute__((noinline)) int drop_and_nap(int n) {
  char* here = (char*)(((uintptr_t)__builtin_frame_address(0) | (kPage - 1)) + 1) + kPage;
  if (madvise(here, (size_t)(stack + kStack - kKept - here), MADV_DONTNEED) != 0) _exit(1);
  struct timespec t = {nap_ns / 1000000000, nap_ns % 1000000000};
  const double began = now();
  clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
  if (now() - began > longest) longest = now() - began;
  return n;
}

__attribute__((noinline)) int descend(int n) {
  volatile char room[kRoom] = {0};
  return (n == 0 ? drop_and_nap(n) : descend(n - 1)) + room[n] + 1;
}

static void* outermost(void* naps) {
  int sum = 0;
  for (int i = 0; i < *(int*)naps; ++i) sum += descend(kDepth);
  return (void*)(intptr_t)sum;
}

int main(int argc, char** argv) {
  int naps = atoi(argv[argc - 2]);
  nap_ns = atol(argv[argc - 1]) * 1000000;
  const int file = memfd_create("stack", 0);
  if (ftruncate(file, kStack) != 0) return 1;
  stack = mmap(NULL, kStack, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, kStack);
  pthread_t thread;
  void* sum;
  if (pthread_create(&thread, &attributes, outermost, &naps) != 0 || pthread_join(thread, &sum) != 0) return 1;
  printf("{\"naps\": %d, \"sum\": %ld, \"longest_s\": %.6f}\n", naps, (long)sum, longest);
  return 0;
}
"""
DEPTH, NAPS = 41, 20
if not shutil.which("gcc"):
    skip("gcc is not installed")
with open(out("dropped.c"), "w", encoding="utf-8") as f:
    f.write(SOURCE)
done = run(["gcc", "-O1", "-g", "-fomit-frame-pointer", "-pthread", "-o", out("dropped"), out("dropped.c")])
check(done.returncode == 0, f"gcc: {done.stderr.strip()[-300:]}")


def at_the_switch():
    profile, truth, _ = record_command([out("dropped"), str(NAPS), "5"], name="switch.dwell")
    rows = profile.rows(cause={"clock_nanosleep"})
    check(sum(r["count"] for r in rows) == NAPS and truth[0]["sum"] == NAPS * DEPTH, f"all naps are counted, the program is unharmed: {truth[0]}")
    cut = [r for r in rows if profile.stack(r)["walk_end"] == "fault"]
    for row in cut:
        functions = profile.user_functions(row)
        check("drop_and_nap" in functions and functions.count("descend") < DEPTH - 5, f"up to where the pages are missing: {functions[:5]} of {len(functions)}")
        check(not profile.stack(row)["user_complete"], "and it is not called whole")
    # The first naps of a new process are walked again, by one who may wait, when its tables come into force.
    again = [r for r in rows if r not in cut]
    counted, faults = sum(r["count"] for r in cut), profile.loss("walk_fault")[0]
    check(counted >= NAPS - 3 and faults >= counted, f"{counted} of {NAPS} naps have such a stack, {faults} walks ended at a page")
    # Before that they went by frame pointer, of which this program has none: any 0 may look like a root then.
    depths = [profile.user_functions(r).count("descend") for r in again if profile.stack(r)["walk_end"] == "root"]
    check(all(depth == DEPTH for depth in depths), f"those of the other {len(again)} that unwind data led to the root: {depths} frames deep")


def asleep_before():
    with subprocess.Popen([out("dropped"), "1", "4000"], stdout=subprocess.PIPE, text=True) as sleeper:
        time.sleep(1)
        path = out("asleep.dwell")
        done = run([DWELL, "record", "-q", "-p", str(sleeper.pid), "-d", "1s", "-o", path])
        check(done.returncode == 0, f"recorded: {done.stderr.strip()[-300:]}")
        truth = json.loads(sleeper.communicate()[0])
    check(truth["sum"] == DEPTH, f"the sleeper is unharmed: {truth}")
    profile = load(path)
    stacks = [profile.user_functions(r) for r in profile.all_rows if "drop_and_nap" in profile.user_functions(r)]
    check(stacks and all(s.count("descend") == DEPTH and "outermost" in s for s in stacks),
          f"asleep before the window: {[(s.count('descend'), s[-2:]) for s in stacks]}")


at_the_switch()
asleep_before()
finish()
