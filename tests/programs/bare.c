// Sleeps in functions without unwind data. Built twice (CMakeLists.txt): with frame pointers, and
// without: then rbp holds a number that is no address, as in optimised code. usage: bare [--ms N]
// [--gate]
#include "truth.h"

#ifdef KEEPS_FRAME_POINTERS
#define OCCUPY_FRAME_POINTER
#define STILL_OCCUPIED
#else
#define OCCUPY_FRAME_POINTER                  \
  register unsigned long busy asm("rbp") = 7; \
  asm volatile("" : "+r"(busy))
#define STILL_OCCUPIED asm volatile("" : "+r"(busy))
#endif

__attribute__((noinline)) static void bare_inner(unsigned ms) {
  OCCUPY_FRAME_POINTER;
  usleep(ms * 1000);
  STILL_OCCUPIED;
}

__attribute__((noinline)) static void bare_outer(unsigned ms) {
  OCCUPY_FRAME_POINTER;
  bare_inner(ms);
  STILL_OCCUPIED;
}

int main(int argc, char** argv) {
  gate(argc, argv, "ready");
  for (int i = 0; i < 10; ++i) bare_outer((unsigned)option(argc, argv, "--ms", 30));
  gate(argc, argv, "done");
  return 0;
}
