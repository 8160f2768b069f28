// W-churn and the tid storm: `--threads` threads come and go, `--parallel` at a time, each naps
// `--us` and ends. One line is the sum over all of them; --survivor keeps a last thread that naps
// 100 x 5 ms after the storm: the tools whose tables are full of dead threads see nothing of it.
// usage: churn [--threads N] [--parallel N] [--us N] [--survivor]
#include <stdatomic.h>

#include "truth.h"

static _Atomic uint64_t naps, naps_ns, switches;
static uint64_t nap_time_ns;

static NOINLINE void short_life(struct truth* t) {
  TIMED(t, nap(nap_time_ns));
  KEEP_FRAME();
}
static void* run(void* unused) {
  struct truth t;
  struct rusage usage;
  (void)unused;
  truth_start(&t, "storm");
  short_life(&t);
  getrusage(RUSAGE_THREAD, &usage);
  atomic_fetch_add(&switches, (uint64_t)(usage.ru_nvcsw - t.start_voluntary));
  atomic_fetch_add(&naps, t.waits);
  atomic_fetch_add(&naps_ns, t.sum_ns);
  return NULL;
}

static NOINLINE void survive(struct truth* t) {
  for (int i = 0; i < 100; i++) TIMED(t, nap(5000000));
  KEEP_FRAME();
}
static void* run_survivor(void* unused) {
  struct truth t;
  (void)unused;
  name_thread("survivor");
  truth_start(&t, "survivor");
  survive(&t);
  truth_print(&t);
  return NULL;
}

int main(int argc, char** argv) {
  long threads = option(argc, argv, "--threads", 1000),
       parallel = option(argc, argv, "--parallel", 1);
  pthread_t thread[256];
  nap_time_ns = (uint64_t)option(argc, argv, "--us", 1000) * 1000;
  if (parallel < 1 || parallel > 256) refuse("churn: --parallel is 1 to 256");
  for (long done = 0; done < threads;) {
    long batch = threads - done < parallel ? threads - done : parallel;
    for (long i = 0; i < batch; i++) thread[i] = start_thread(run, NULL);
    for (long i = 0; i < batch; i++) pthread_join(thread[i], NULL);
    done += batch;
  }
  // A short nap may be over before the thread has left the CPU: then there is no switch.
  printf(
      "{\"pid\": %d, \"what\": \"storm\", \"threads\": %ld, \"waits\": %llu, \"voluntary\": %llu, "
      "\"sum_ns\": %llu}\n",
      getpid(), threads, (unsigned long long)naps, (unsigned long long)switches,
      (unsigned long long)naps_ns);
  fflush(stdout);
  if (flag(argc, argv, "--survivor")) pthread_join(start_thread(run_survivor, NULL), NULL);
  return 0;
}
