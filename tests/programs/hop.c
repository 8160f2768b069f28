// W-hop: one thread that moves to the next CPU before each nap: its sleep begins on one CPU and may
// end on another. The truth is of the naps only; moving may block too, under the cause
// sched_setaffinity. usage: hop [--us N] [--waits N]
#include "truth.h"

static NOINLINE void hop_and_nap(struct truth* t, uint64_t ns, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set,
                    &set);  // fails while that CPU is offline: then it naps where it is
  TIMED(t, nap(ns));
  KEEP_FRAME();
}

int main(int argc, char** argv) {
  uint64_t ns = (uint64_t)option(argc, argv, "--us", 5000) * 1000;
  long waits = option(argc, argv, "--waits", 400);
  int cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
  struct truth t;
  truth_start(&t, "clock_nanosleep");
  for (long i = 0; i < waits; i++) hop_and_nap(&t, ns, (int)(i % cpus));
  truth_print(&t);
  return 0;
}
