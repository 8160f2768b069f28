// W-spin2: two busy threads on one CPU that never give it up by themselves; all their off-CPU time
// is run queue. With --yield they call sched_yield all the time instead: the same switches to the
// kernel, another reason. usage: spin2 [--ms N] [--cpu N] [--yield]
#include "truth.h"

static uint64_t spin_time_ns;
static int yield;

static NOINLINE void spin(uint64_t until_ns) {
  while (now_ns() < until_ns)
    for (volatile int i = 0; i < 1000; i++) continue;
  KEEP_FRAME();
}
static NOINLINE void spin_and_yield(uint64_t until_ns) {
  while (now_ns() < until_ns) syscall(SYS_sched_yield);
  KEEP_FRAME();
}

static void* run(void* name) {
  struct truth t;
  name_thread(name);
  truth_start(&t, yield ? "yielded" : "preempted");
  if (yield)
    spin_and_yield(t.start_ns + spin_time_ns);
  else
    spin(t.start_ns + spin_time_ns);
  truth_print(&t);
  return NULL;
}

int main(int argc, char** argv) {
  spin_time_ns = (uint64_t)option(argc, argv, "--ms", 2000) * 1000000;
  pin_to_cpu((int)option(argc, argv, "--cpu", 0));
  yield = flag(argc, argv, "--yield");
  pthread_t left = start_thread(run, "spin_left"), right = start_thread(run, "spin_right");
  pthread_join(left, NULL);
  pthread_join(right, NULL);
  return 0;
}
