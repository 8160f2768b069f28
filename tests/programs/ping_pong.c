// Two processes that hand a byte to and fro through pipes, pinned to one CPU: each hand-over is one
// switch. Prints the round trips per second of each round, and at the end how often each of the two
// gave up its CPU, by the kernel's count. `--depth N` calls N functions first, so that user stacks
// are that deep. usage: ping_pong [--seconds N] [--rounds N] [--depth N] [--cpu N] [--child-cpu N]
// [--gate]
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "truth.h"

static int ping[2], pong[2];
static uint64_t round_ns;
static long rounds;

static NOINLINE void answer(void) {
  char byte;
  while (read(ping[0], &byte, 1) == 1)
    if (write(pong[1], &byte, 1) != 1) break;
  KEEP_FRAME();
}

static NOINLINE void play(void) {
  char byte = 'x';
  for (long round = 0; round < rounds; round++) {
    uint64_t trips = 0, from_ns = now_ns(), to_ns;
    do {
      for (int i = 0; i < 64; i++) {
        if (write(ping[1], &byte, 1) != 1 || read(pong[0], &byte, 1) != 1) die("ping_pong");
      }
      trips += 64;
      to_ns = now_ns();
    } while (to_ns - from_ns < round_ns);
    printf(
        "{\"what\": \"ping_pong\", \"round_trips\": %llu, \"ns\": %llu, \"per_second\": %.0f, "
        "\"ns_per_switch\": "
        "%.1f}\n",
        (unsigned long long)trips, (unsigned long long)(to_ns - from_ns),
        (double)trips * 1e9 / (double)(to_ns - from_ns),
        (double)(to_ns - from_ns) / (2.0 * (double)trips));
    fflush(stdout);
  }
  KEEP_FRAME();
}

static void print_switches(void) {
  struct rusage parent, child;
  if (getrusage(RUSAGE_SELF, &parent) || getrusage(RUSAGE_CHILDREN, &child)) die("getrusage");
  printf("{\"what\": \"switches\", \"parent\": %ld, \"child\": %ld}\n", parent.ru_nvcsw,
         child.ru_nvcsw);
}

static NOINLINE void descend(long left, void (*work)(void)) {
  if (left > 0)
    descend(left - 1, work);
  else
    work();
  KEEP_FRAME();
}

int main(int argc, char** argv) {
  long depth = option(argc, argv, "--depth", 0);
  round_ns =
      (uint64_t)(option(argc, argv, "--ms", 1000 * option(argc, argv, "--seconds", 1))) * 1000000;
  rounds = option(argc, argv, "--rounds", 1);
  if (pipe(ping) || pipe(pong)) die("pipe");
  int cpu = (int)option(argc, argv, "--cpu", 0);
  pin_to_cpu(cpu);
  pid_t child = fork();
  if (child < 0) die("fork");
  if (child == 0) {
    int child_cpu = (int)option(argc, argv, "--child-cpu", cpu);
    if (child_cpu != cpu) pin_to_cpu(child_cpu);
    close(ping[1]);
    close(pong[0]);
    descend(depth, answer);
    _exit(0);
  }
  close(ping[0]);
  close(pong[1]);
  gate(argc, argv, "ready");
  descend(depth, play);
  gate(argc, argv, "done");
  close(ping[1]);
  waitpid(child, NULL, 0);
  print_switches();
  return 0;
}
