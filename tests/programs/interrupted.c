// A signal at the first instruction of a function: `victim` begins with one that no CPU knows, and
// directly before it, without a gap, ends `before_victim`. The handler naps, then goes on behind
// the instruction. usage: interrupted [--waits N] [--gate]
#include <signal.h>
#include <ucontext.h>

#include "truth.h"

static struct truth t;
static volatile long handled;

#if defined(__x86_64__)
enum { kTrapBytes = 2 };
__asm__(
    ".text\n"
    ".type before_victim,@function\nbefore_victim:\n.cfi_startproc\nnop\nnop\nret\n.cfi_endproc\n"
    ".size before_victim,.-before_victim\n"
    ".globl victim\n.type victim,@function\nvictim:\n.cfi_startproc\nud2\nret\n.cfi_endproc\n"
    ".size victim,.-victim\n");
void victim(void);
#define RESUME(context) ((context)->uc_mcontext.gregs[REG_RIP] += kTrapBytes)
#else
static void victim(void) { raise(SIGILL); }
#define RESUME(context) (void)(context)
#endif

static NOINLINE void handler(int number, siginfo_t* info, void* context) {
  (void)number, (void)info;
  TIMED(&t, nap(10000000));
  handled++;
  RESUME((ucontext_t*)context);
}
static NOINLINE void calls_victim(void) {
  victim();
  KEEP_FRAME();
}

int main(int argc, char** argv) {
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
  long waits = option(argc, argv, "--waits", 20);
  if (sigaction(SIGILL, &action, NULL)) die("sigaction");
  gate(argc, argv, "ready");
  name_thread("interrupted");
  truth_start(&t, "clock_nanosleep");
  while (handled < waits) calls_victim();
  truth_print(&t);
  gate(argc, argv, "done");
  return 0;
}
