// Frame pointers and no unwind data: a nap before the function has set its frame pointer up, when
// rbp is still its caller's and a walk by frame pointers alone would leave the caller out.
// usage: early [--waits N]
#include "truth.h"

// long early_nap(const struct timespec*, struct timespec*): nanosleep at once.
__asm__(
    ".text\n.globl early_nap\n.type early_nap,@function\n"
    "early_nap:\n  mov $35,%eax\n  syscall\n  push %rbp\n  mov %rsp,%rbp\n  pop %rbp\n  ret\n"
    ".size early_nap,.-early_nap\n");
long early_nap(const struct timespec* time, struct timespec* left);

static NOINLINE void early_caller(struct truth* t) {
  const struct timespec time = {0, 10000000};
  TIMED(t, early_nap(&time, NULL));
  KEEP_FRAME();
}

int main(int argc, char** argv) {
  const long waits = option(argc, argv, "--waits", 20);
  struct truth t;
  truth_start(&t, "nanosleep");
  for (long i = 0; i < waits; i++) early_caller(&t);
  truth_print(&t);
  return 0;
}
