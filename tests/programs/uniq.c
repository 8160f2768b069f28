// W-uniq(bits): a recursion in which each of `bits` bits picks turn_a or turn_b, then a nap: 2^bits
// different stacks whose function names spell the pattern. --print writes {"pattern":, "ns":,
// "cpu_ns": the thread's CPU clock around the nap} for each, leaf-side bit first.
// `--count N` stops after N patterns; `--threads N` shares the patterns out.
// usage: uniq [--bits N] [--count N] [--us N] [--threads N] [--print] [--gate]
#include "truth.h"

static int bits, print_each;
static long count, threads;
static uint64_t nap_time_ns;

static void turn(long pattern, int left, struct truth* t);
static NOINLINE void turn_a(long pattern, int left, struct truth* t) {
  turn(pattern, left, t);
  KEEP_FRAME();
}
static NOINLINE void turn_b(long pattern, int left, struct truth* t) {
  turn(pattern, left, t);
  KEEP_FRAME();
}
static inline __attribute__((always_inline)) void turn(long pattern, int left, struct truth* t) {
  if (left == 0)
    TIMED(t, nap(nap_time_ns));
  else if (pattern >> (left - 1) & 1)
    turn_b(pattern, left - 1, t);
  else
    turn_a(pattern, left - 1, t);
}

static void print_pattern(long pattern, uint64_t ns, uint64_t cpu_ns) {
  char word[64];
  for (int i = 0; i < bits; i++) word[i] = pattern >> i & 1 ? 'b' : 'a';
  word[bits] = 0;
  printf("{\"pattern\": \"%s\", \"ns\": %llu, \"cpu_ns\": %llu}\n", word, (unsigned long long)ns,
         (unsigned long long)cpu_ns);
}

static void* run(void* index) {
  struct truth t;
  prctl(PR_SET_TIMERSLACK, 1);
  truth_start(&t, "clock_nanosleep");
  for (long pattern = (intptr_t)index; pattern < count; pattern += threads) {
    uint64_t before = t.sum_ns, cpu_ns = print_each ? clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0;
    turn(pattern, bits, &t);
    if (!print_each) continue;
    cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
    print_pattern(pattern, t.sum_ns - before, cpu_ns);
  }
  truth_print(&t);
  return NULL;
}

int main(int argc, char** argv) {
  static char buffer[1 << 20];
  pthread_t thread[64];
  setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
  bits = (int)option(argc, argv, "--bits", 12);
  count = option(argc, argv, "--count", 1L << bits);
  threads = option(argc, argv, "--threads", 1);
  nap_time_ns = (uint64_t)option(argc, argv, "--us", 100) * 1000;
  print_each = flag(argc, argv, "--print");
  if (bits > 40 || threads < 1 || threads > 64)
    refuse("uniq: --bits at most 40, --threads 1 to 64");
  gate(argc, argv, "ready");
  for (intptr_t i = 0; i < threads; i++) thread[i] = start_thread(run, (void*)i);
  for (long i = 0; i < threads; i++) pthread_join(thread[i], NULL);
  fflush(stdout);
  gate(argc, argv, "done");
  return 0;
}
