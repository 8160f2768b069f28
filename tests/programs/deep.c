// W-deep: a thread per depth calls itself that many times from a root function of its own and naps
// `--ms`. The depths are those around the kernel's limit of 127 frames. usage: deep [--ms N]
#include "truth.h"

static uint64_t nap_time_ns;

static NOINLINE void descend(int left, struct truth* t) {
  if (left > 0)
    descend(left - 1, t);
  else
    TIMED(t, nap(nap_time_ns));
  KEEP_FRAME();
}

#define ROOT(depth)                                  \
  static NOINLINE void* root_##depth(void* unused) { \
    struct truth t;                                  \
    (void)unused;                                    \
    name_thread("root_" #depth);                     \
    truth_start(&t, #depth);                         \
    descend(depth - 1, &t);                          \
    truth_print(&t);                                 \
    return NULL;                                     \
  }
ROOT(50)
ROOT(100)
ROOT(126)
ROOT(127)
ROOT(128)
ROOT(500)

int main(int argc, char** argv) {
  static void* (*const kRoots[])(void*) = {root_50,  root_100, root_126,
                                           root_127, root_128, root_500};
  pthread_t thread[6];
  nap_time_ns = (uint64_t)option(argc, argv, "--ms", 300) * 1000000;
  for (int i = 0; i < 6; i++) thread[i] = start_thread(kRoots[i], NULL);
  for (int i = 0; i < 6; i++) pthread_join(thread[i], NULL);
  return 0;
}
