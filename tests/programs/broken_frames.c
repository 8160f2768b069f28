// Frame pointers that lead nowhere: the register holds a counter, an unmapped address, a kernel
// address, or its own address, while the thread naps 20 x 5 ms. Every stack of these is incomplete
// and none may loop. usage: broken_frames
#include "truth.h"

// Naps with the frame pointer set to the value. Exchanged, not pushed: a push would land in the red
// zone.
static NOINLINE void nap_with_frame(uint64_t ns, uint64_t frame) {
  struct timespec t = {0, (long)ns};
  long number = SYS_clock_nanosleep;
  register long null __asm__("r10") = 0;
  __asm__ volatile("xchg %%rbp, %[frame]\n syscall\n xchg %%rbp, %[frame]"
                   : "+a"(number), [frame] "+r"(frame)
                   : "D"((long)CLOCK_MONOTONIC), "S"(0L), "d"(&t), "r"(null)
                   : "rcx", "r11", "memory");
  if (number != 0) die("nap");
}

static void nap_with(const char* what, uint64_t frame, int counts) {
  struct truth t;
  name_thread(what);
  truth_start(&t, what);
  for (int i = 0; i < 20; i++)
    TIMED(&t, nap_with_frame(5000000, counts ? frame + (uint64_t)i : frame));
  truth_print(&t);
}

static void* run(void* unused) {
  static uint64_t loop_frame[2];
  loop_frame[0] = (uint64_t)(uintptr_t)loop_frame;  // a frame whose caller's frame is itself
  loop_frame[1] = (uint64_t)(uintptr_t)run;
  (void)unused;
  nap_with("frame_counter", 0x1234, 1);
  nap_with("frame_unmapped", 0x10000, 0);
  nap_with("frame_kernel", 0xffffffff81000000, 0);
  nap_with("frame_loop", (uint64_t)(uintptr_t)loop_frame, 0);
  return NULL;
}

int main(void) {
  pthread_join(start_thread(run, NULL), NULL);
  return 0;
}
