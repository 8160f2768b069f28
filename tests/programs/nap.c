// W-nap: main > outer > inner > nap, `--waits` naps of `--us` microseconds; with --libc through
// usleep(), which has no frame pointer. `--threads N` (at most 4) naps in N threads, each through a
// function of its own. usage: nap [--us N] [--waits N] [--threads N] [--libc] [--gate] [--forever]
#include "truth.h"

static uint64_t nap_time_ns;
static long waits;
static int libc, forever;

static NOINLINE void one_nap(struct truth* t) {
  if (libc)
    TIMED(t, usleep((useconds_t)(nap_time_ns / 1000)));
  else
    TIMED(t, nap(nap_time_ns));
  KEEP_FRAME();
}
static NOINLINE void inner(struct truth* t) {
  for (long i = 0; i < waits || forever; i++) one_nap(t);
  KEEP_FRAME();
}
static NOINLINE void outer(struct truth* t) {
  inner(t);
  KEEP_FRAME();
}

#define PATH(name)                             \
  static NOINLINE void name(struct truth* t) { \
    outer(t);                                  \
    KEEP_FRAME();                              \
  }
PATH(path_north)
PATH(path_east)
PATH(path_south)
PATH(path_west)

static const struct {
  const char* name;
  void (*path)(struct truth*);
} kPaths[] = {{"path_north", path_north},
              {"path_east", path_east},
              {"path_south", path_south},
              {"path_west", path_west}};

static void* run(void* index) {
  struct truth t;
  name_thread(kPaths[(intptr_t)index].name);
  truth_start(&t, "clock_nanosleep");
  kPaths[(intptr_t)index].path(&t);
  truth_print(&t);
  return NULL;
}

int main(int argc, char** argv) {
  long threads = option(argc, argv, "--threads", 0);
  nap_time_ns = (uint64_t)option(argc, argv, "--us", 10000) * 1000;
  waits = option(argc, argv, "--waits", 100);
  libc = flag(argc, argv, "--libc");
  forever = flag(argc, argv, "--forever");
  if (threads > 4) threads = 4;
  gate(argc, argv, "ready");
  if (threads == 0) {
    struct truth t;
    truth_start(&t, "clock_nanosleep");
    outer(&t);
    truth_print(&t);
  } else {
    pthread_t thread[4];
    for (intptr_t i = 0; i < threads; i++) thread[i] = start_thread(run, (void*)i);
    for (long i = 0; i < threads; i++) pthread_join(thread[i], NULL);
  }
  gate(argc, argv, "done");
  return 0;
}
