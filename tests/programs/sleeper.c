// One thread per way to block, all at once; each prints its own truth. The ways are in
// sleeper_ways.c; this file starts the threads that wait and the threads that they wait for.
// `--seconds N` or `--waits N`: each way waits N times, about 20 ms each (`--us`). --only WAY runs
// one way. usage: sleeper [--seconds N] [--waits N] [--us N] [--only WAY] [--gate]
#include "sleeper.h"

long sleeper_waits;
uint64_t sleeper_wait_ns;

static void* run_way(void* argument) {
  const struct way* way = argument;
  struct truth t;
  name_thread(way->name);
  truth_start(&t, way->name);
  way->wait(&t);
  truth_print(&t);
  return NULL;
}

// The other end of a wait. It prints its truth too: it sleeps as well.
static void* run_other_end(void* argument) {
  const struct way* way = argument;
  struct truth t;
  char name[16];
  snprintf(name, sizeof name, "for_%s", way->name);
  name_thread(name);
  truth_start(&t, "other end");
  way->other_end(&t);
  truth_print(&t);
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t thread[64];
  int threads = 0;
  const char* only = NULL;
  for (int i = 1; i + 1 < argc; i++)
    if (!strcmp(argv[i], "--only")) only = argv[i + 1];
  sleeper_wait_ns = (uint64_t)option(argc, argv, "--us", 20000) * 1000;
  sleeper_waits = option(argc, argv, "--seconds", 2) * 1000000000 / (long)sleeper_wait_ns;
  sleeper_waits = option(argc, argv, "--waits", sleeper_waits);
  gate(argc, argv, "ready");
  for (const struct way* way = kWays; way->name; way++) {
    if (only && strcmp(only, way->name)) continue;
    if (way->prepare && !way->prepare()) {
      printf("{\"what\": \"%s\", \"impossible\": \"%s\"}\n", way->name, strerror(errno));
      fflush(stdout);
      continue;
    }
    thread[threads++] = start_thread(run_way, (void*)way);
    if (way->other_end) thread[threads++] = start_thread(run_other_end, (void*)way);
  }
  for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
  gate(argc, argv, "done");
  return threads ? 0 : 1;
}
