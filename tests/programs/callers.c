// Return addresses that name the wrong function when they are used as they are: trap_a() ends with
// a call that never returns, so its return address is the first byte of innocent(), which never
// runs. And a nap in a signal handler, which interrupts loop(). usage: callers noreturn|signal
#include <signal.h>

#include "truth.h"

static struct truth t;
static __attribute__((noreturn, noinline, noclone)) void blocker(void) {
  for (int i = 0; i < 20; i++) TIMED(&t, nap(10000000));
  truth_print(&t);
  _exit(0);
}

// In one section of our own, in this order, without padding between the two.
#define ROW __attribute__((noinline, noclone, used, section(".text.row"), aligned(1)))
ROW void trap_a(void);
ROW void innocent(void);
__asm__(
    ".pushsection .text.row,\"ax\",@progbits\n"
    ".globl trap_a\n.type trap_a,@function\n"
    "trap_a:\n  push %rbp\n  mov %rsp,%rbp\n  call *blocker_pointer(%rip)\n.size trap_a,.-trap_a\n"
    ".globl innocent\n.type innocent,@function\n"
    "innocent:\n  ret\n.size innocent,.-innocent\n"
    ".popsection\n");
__attribute__((used)) void (*blocker_pointer)(void) = blocker;

static volatile sig_atomic_t handled;
static NOINLINE void in_handler(int signal_number) {
  (void)signal_number;
  TIMED(&t, nap(10000000));
  handled++;
  KEEP_FRAME();
}
static NOINLINE void loop(void) {
  while (handled < 20)
    for (volatile int i = 0; i < 100000; i++) continue;
  KEEP_FRAME();
}

int main(int argc, char** argv) {
  if (argc != 2) refuse("usage: callers noreturn|signal");
  truth_start(&t, "clock_nanosleep");
  if (!strcmp(argv[1], "noreturn")) trap_a();
  struct timespec every = {0, 15000000};
  timer_t timer;
  signal(SIGALRM, in_handler);
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer)) die("timer_create");
  struct itimerspec spec = {every, every};
  if (timer_settime(timer, 0, &spec, NULL)) die("timer_settime");
  loop();
  truth_print(&t);
  return 0;
}
