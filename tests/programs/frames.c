// Waits at the end of calls that are hard to walk back without frame pointers, which this program
// is built without, as libc is. One thread per way, named after it; each waits `--waits` times 10
// ms through libc, in a function whose name ends in _nap or, for vfork, in the system call itself.
// usage: frames [--waits N]
#include <alloca.h>
#include <signal.h>
#include <sys/wait.h>

#include "truth.h"

enum { WAIT_US = 10000, DEPTH = 60 };
static long waits;
static struct truth t;
static char* volatile escaped;

static NOINLINE void libc_nap(void) {
  TIMED(&t, usleep(WAIT_US));
  KEEP_FRAME();
}

static NOINLINE void chain_inner(void) {
  libc_nap();
  KEEP_FRAME();
}
static NOINLINE void chain_outer(void) {
  chain_inner();
  KEEP_FRAME();
}
static void way_chain(void) { chain_outer(); }

// From libc back into the program.
static int naps_left;
static NOINLINE int callback_compare(const void* a, const void* b) {
  if (naps_left > 0) {
    naps_left--;
    libc_nap();
  }
  return *(const int*)a - *(const int*)b;
}
static NOINLINE void callback_sort(void) {
  int values[64];
  for (int i = 0; i < 64; i++) values[i] = i * 37 % 64;
  naps_left = 1;
  qsort(values, 64, sizeof *values, callback_compare);
  KEEP_FRAME();
}
static void way_callback(void) { callback_sort(); }

static NOINLINE void handler(int signal_number) {
  (void)signal_number;
  libc_nap();
  KEEP_FRAME();
}
static NOINLINE void handler_raise(int flags) {
  struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
  sigaction(SIGUSR1, &action, NULL);
  raise(SIGUSR1);
  KEEP_FRAME();
}
static void way_handler(void) { handler_raise(0); }

// The stack pointer goes down to another stack and back.
static void way_altstack(void) {
  static char memory[65536];
  stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
  if (sigaltstack(&stack, NULL)) die("sigaltstack");
  handler_raise(SA_ONSTACK);
}

// A C library without unwind data for the code that handlers return to, as musl has it.
__asm__(
    ".text\n.globl bare_restorer\n.type bare_restorer,@function\n"
    "bare_restorer:\n  mov $15,%rax\n  syscall\n.size bare_restorer,.-bare_restorer\n");
extern void bare_restorer(void);

static NOINLINE void restorer_raise(void) {
  enum { SA_RESTORER_ = 0x04000000 };
  struct {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
  } action = {handler, SA_RESTORER_, bare_restorer, 0};
  if (syscall(SYS_rt_sigaction, SIGUSR2, &action, NULL, sizeof action.mask)) die("rt_sigaction");
  raise(SIGUSR2);
  KEEP_FRAME();
}
static void way_restorer(void) { restorer_raise(); }

// Goes over to a stack at higher addresses, without unwind data, and keeps its own in rbp: as Go
// does to run C code, and fibres.
__asm__(
    ".text\n.globl bare_switch\n.type bare_switch,@function\n"
    "bare_switch:\n  push %rbp\n  mov %rsp,%rbp\n  mov %rsi,%rsp\n  call *%rdi\n"
    "  mov %rbp,%rsp\n  pop %rbp\n  ret\n.size bare_switch,.-bare_switch\n");
extern void bare_switch(void (*function)(void), void* stack_end);

static char* higher_stack_end;  // of the first thread, above those of all others
static NOINLINE void switch_stacks(void) {
  bare_switch(libc_nap, higher_stack_end);
  KEEP_FRAME();
}
static void way_switched(void) { switch_stacks(); }

// An aligned variable and a variable amount of memory: the caller's stack pointer is kept in
// memory.
static NOINLINE void realigned_frame(size_t bytes) {
  char aligned[256] __attribute__((aligned(128)));
  char* dynamic = alloca(bytes);
  memset(aligned, 1, sizeof aligned);
  memset(dynamic, 2, bytes);
  escaped = aligned;
  libc_nap();
  escaped = dynamic;
}
static void way_realigned(void) { realigned_frame(1000 + (size_t)waits); }

static NOINLINE int descend(int levels) {
  volatile char room[48 + 16 * 3];
  room[0] = (char)levels;
  if (levels == 0)
    libc_nap();
  else
    descend(levels - 1);
  return room[0];
}
static void way_descent(void) { descend(DEPTH - 1); }

// The parent waits in vfork itself, with its return address in a register.
static NOINLINE void vfork_parent(void) {
  struct timespec pause = {0, WAIT_US * 1000};
  uint64_t from_ns = now_ns();
  pid_t child = vfork();
  if (child == 0) {
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
    _exit(0);
  }
  truth_add(&t, now_ns() - from_ns);
  waitpid(child, NULL, 0);
}
static void way_vfork(void) { vfork_parent(); }

static const struct {
  const char* name;
  void (*run)(void);
  const char* cause;
} kWays[] = {{"chain", way_chain, "clock_nanosleep"},
             {"callback", way_callback, "clock_nanosleep"},
             {"handler", way_handler, "clock_nanosleep"},
             {"altstack", way_altstack, "clock_nanosleep"},
             {"restorer", way_restorer, "clock_nanosleep"},
             {"realigned", way_realigned, "clock_nanosleep"},
             {"descent", way_descent, "clock_nanosleep"},
             {"switched", way_switched, "clock_nanosleep"},
             {"vfork", way_vfork, "vfork"}};

static void* run(void* index) {
  name_thread(kWays[(intptr_t)index].name);
  truth_start(&t, kWays[(intptr_t)index].cause);
  for (long i = 0; i < waits; i++) kWays[(intptr_t)index].run();
  truth_print(&t);
  return NULL;
}

static NOINLINE void main_path(void) {
  for (long i = 0; i < waits; i++) chain_outer();
  KEEP_FRAME();
}

int main(int argc, char** argv) {
  waits = option(argc, argv, "--waits", 20);
  gate(argc, argv, "ready");
  truth_start(&t, "clock_nanosleep");
  main_path();
  truth_print(&t);
  char stack[65536] __attribute__((aligned(16)));
  higher_stack_end = stack + sizeof stack;
  for (size_t i = 0; i < sizeof kWays / sizeof *kWays; i++)
    pthread_join(start_thread(run, (void*)(intptr_t)i), NULL);
  gate(argc, argv, "done");
  return 0;
}
