// What the test programs share: a wait that is timed by the program's own monotonic clock, and one
// JSON line per thread that says so. The e2e tests compare Dwell's report with these lines.
//
// A line: {"tid":, "name": the thread's name, "what":, "waits": blocking calls, "sum_ns": of the
// clock around each, "max_ns":, "start_ns"/"end_ns": the thread's life (CLOCK_MONOTONIC), "cpu_ns":
// its CPU clock over that life, "voluntary"/"involuntary": its context switches over that life, by
// the kernel}. Nothing in here is called by a thread between two of its clock readings but the wait
// itself.
#ifndef DWELL_TESTS_TRUTH_H
#define DWELL_TESTS_TRUTH_H

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone, unused))
// Ends a function with work after its last call, so that the call is not turned into a jump.
#define KEEP_FRAME() __asm__ volatile("" ::: "memory")

struct truth {
  const char* what;
  uint64_t waits, sum_ns, max_ns;
  uint64_t start_ns, start_cpu_ns;
  long start_voluntary, start_involuntary;
};

static inline uint64_t clock_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static inline uint64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

static inline void die(const char* action) {
  perror(action);
  exit(1);
}

// For wrong options.
static inline void refuse(const char* sentence) {
  fprintf(stderr, "%s\n", sentence);
  exit(2);
}

// Sleeps without a frame of libc, which has no frame pointers: the walk goes from here to main.
static NOINLINE void nap(uint64_t ns) {
  struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
  long number = SYS_clock_nanosleep;
  register long flags_null __asm__("r10") = 0;
  __asm__ volatile("syscall"
                   : "+a"(number)
                   : "D"((long)CLOCK_MONOTONIC), "S"(0L), "d"(&t), "r"(flags_null)
                   : "rcx", "r11", "memory");
}

static inline void truth_start(struct truth* t, const char* what) {
  struct rusage usage;
  memset(t, 0, sizeof *t);
  t->what = what;
  t->start_ns = now_ns();
  t->start_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  getrusage(RUSAGE_THREAD, &usage);
  t->start_voluntary = usage.ru_nvcsw;
  t->start_involuntary = usage.ru_nivcsw;
}

static inline void truth_add(struct truth* t, uint64_t ns) {
  t->waits++;
  t->sum_ns += ns;
  if (ns > t->max_ns) t->max_ns = ns;
}

// Counts the statement as one wait of the thread.
#define TIMED(t, wait)                      \
  do {                                      \
    uint64_t timed_from_ = now_ns();        \
    wait;                                   \
    truth_add((t), now_ns() - timed_from_); \
  } while (0)

static inline void truth_print(const struct truth* t) {
  struct rusage usage;
  char line[512], name[17] = "";
  uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), end_ns = now_ns();
  getrusage(RUSAGE_THREAD, &usage);
  prctl(PR_GET_NAME, name);
  for (char* c = name; *c; c++)
    if (*c < ' ' || *c == '"' || *c == '\\' || *c & 0x80) *c = '?';
  int n = snprintf(
      line, sizeof line,
      "{\"pid\": %d, \"tid\": %ld, \"name\": \"%s\", \"what\": \"%s\", \"waits\": %llu, "
      "\"sum_ns\": %llu, \"max_ns\": %llu, \"start_ns\": %llu, \"end_ns\": %llu, "
      "\"cpu_ns\": %llu, \"voluntary\": %ld, \"involuntary\": %ld}\n",
      getpid(), syscall(SYS_gettid), name, t->what, (unsigned long long)t->waits,
      (unsigned long long)t->sum_ns, (unsigned long long)t->max_ns, (unsigned long long)t->start_ns,
      (unsigned long long)end_ns, (unsigned long long)(cpu_ns - t->start_cpu_ns),
      usage.ru_nvcsw - t->start_voluntary, usage.ru_nivcsw - t->start_involuntary);
  if (write(STDOUT_FILENO, line, (size_t)n) != n) die("write truth");
}

// The value of `--name N`, or the default.
static inline long option(int argc, char** argv, const char* name, long value) {
  for (int i = 1; i + 1 < argc; i++)
    if (!strcmp(argv[i], name)) value = strtol(argv[i + 1], NULL, 0);
  return value;
}
static inline int flag(int argc, char** argv, const char* name) {
  for (int i = 1; i < argc; i++)
    if (!strcmp(argv[i], name)) return 1;
  return 0;
}

// With --gate the program says that it is ready and waits for a byte (or the end) of its input
// before its work, and again after it: so a recording that is started by pid can hold the whole
// work.
static NOINLINE void gate(int argc, char** argv, const char* word) {
  char byte;
  if (!flag(argc, argv, "--gate")) return;
  if (dprintf(STDOUT_FILENO, "{\"gate\": \"%s\", \"pid\": %d, \"at_ns\": %llu}\n", word, getpid(),
              (unsigned long long)now_ns()) < 0)
    die("write gate");
  if (read(STDIN_FILENO, &byte, 1) < 0) die("read gate");
}

static inline void pin_to_cpu(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set)) die("sched_setaffinity");
}

static inline pthread_t start_thread(void* (*run)(void*), void* argument) {
  pthread_t thread;
  int error = pthread_create(&thread, NULL, run, argument);
  if (error) {
    fprintf(stderr, "pthread_create: %s\n", strerror(error));
    exit(1);
  }
  return thread;
}
static inline void name_thread(const char* name) { prctl(PR_SET_NAME, name); }

#endif
