// W-lock: `holder` wakes `waiter` from release_path() every `--us`; the waiter sleeps in
// wait_path(), both on a bare futex without a frame of libc. usage: lock [--us N] [--waits N]
#include <linux/futex.h>
#include <stdatomic.h>

#include "truth.h"

static _Atomic uint32_t word;

// The frame address makes the compiler set up a frame, which it leaves out where a function calls
// nothing.
static NOINLINE long futex(int operation, uint32_t value) {
  long number = SYS_futex;
  register long timeout __asm__("r10") = 0;
  __asm__ volatile("syscall"
                   : "+a"(number)
                   : "D"(&word), "S"((long)operation), "d"((long)value), "r"(timeout),
                     "m"(*(char*)__builtin_frame_address(0))
                   : "rcx", "r11", "memory");
  return number;
}

static NOINLINE void wait_path(struct truth* t, uint32_t seen) {
  while (atomic_load(&word) == seen) TIMED(t, futex(FUTEX_WAIT_PRIVATE, seen));
  KEEP_FRAME();
}
static NOINLINE void release_path(void) {
  atomic_fetch_add(&word, 1);
  futex(FUTEX_WAKE_PRIVATE, 1);
  KEEP_FRAME();
}

static long waits;
static uint64_t hold_ns;
static void* run_waiter(void* unused) {
  struct truth t;
  (void)unused;
  name_thread("waiter");
  truth_start(&t, "futex");
  for (long i = 0; i < waits; i++) wait_path(&t, (uint32_t)i);
  truth_print(&t);
  return NULL;
}
static void* run_holder(void* unused) {
  struct truth t;
  (void)unused;
  name_thread("holder");
  truth_start(&t, "clock_nanosleep");
  for (long i = 0; i < waits; i++) {
    TIMED(&t, nap(hold_ns));
    release_path();
  }
  truth_print(&t);
  return NULL;
}

int main(int argc, char** argv) {
  waits = option(argc, argv, "--waits", 100);
  hold_ns = (uint64_t)option(argc, argv, "--us", 20000) * 1000;
  pthread_t waiter = start_thread(run_waiter, NULL), holder = start_thread(run_holder, NULL);
  pthread_join(waiter, NULL);
  pthread_join(holder, NULL);
  return 0;
}
