// Threads and processes that change who they are: a thread renames itself from alpha to gamma,
// another is called `beta;x y`, then the process goes on as another program by execve, from its
// leader or from another thread. usage: identity [--ms N] [--exec-from-thread] [--no-exec]
#include "truth.h"

static uint64_t phase_ns;
static int exec_from_thread;

static NOINLINE void nap_for(struct truth* t, uint64_t ns) {
  uint64_t until_ns = now_ns() + ns;
  while (now_ns() < until_ns) TIMED(t, nap(5000000));
  KEEP_FRAME();
}
#define LIFE(name, ns)                         \
  static NOINLINE void name(struct truth* t) { \
    nap_for(t, ns);                            \
    KEEP_FRAME();                              \
  }
LIFE(as_alpha, phase_ns)
LIFE(as_gamma, phase_ns)
LIFE(as_beta, 2 * phase_ns)
LIFE(after_exec, phase_ns)

static void become_second_program(void) {
  char ms[32];
  snprintf(ms, sizeof ms, "%llu", (unsigned long long)(phase_ns / 1000000));
  execl("/proc/self/exe", "identity_second", "--second", "--ms", ms, (char*)NULL);
  die("exec");
}

static void* run_alpha(void* unused) {
  struct truth t;
  (void)unused;
  name_thread("alpha");
  truth_start(&t, "alpha");
  as_alpha(&t);
  truth_print(&t);
  name_thread("gamma");
  truth_start(&t, "gamma");
  as_gamma(&t);
  truth_print(&t);
  if (exec_from_thread) become_second_program();
  return NULL;
}
static void* run_beta(void* unused) {
  struct truth t;
  (void)unused;
  name_thread("beta;x y");
  truth_start(&t, "beta");
  as_beta(&t);
  truth_print(&t);
  return NULL;
}

int main(int argc, char** argv) {
  phase_ns = (uint64_t)option(argc, argv, "--ms", 500) * 1000000;
  exec_from_thread = flag(argc, argv, "--exec-from-thread");
  if (flag(argc, argv, "--second")) {
    struct truth t;
    name_thread("proc_second");
    truth_start(&t, "second");
    after_exec(&t);
    truth_print(&t);
    return 0;
  }
  name_thread("proc_main");
  pthread_t alpha = start_thread(run_alpha, NULL), beta = start_thread(run_beta, NULL);
  pthread_join(beta, NULL);
  pthread_join(alpha, NULL);
  if (!flag(argc, argv, "--no-exec")) become_second_program();
  return 0;
}
