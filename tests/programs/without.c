// Runs a command to which the kernel denies system calls, as a container's seccomp profile does:
// `bpf` and `perf_event_open` are known by name. usage: without SYSCALL[,SYSCALL] ERRNO COMMAND
// [ARGUMENTS...]
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

#include "truth.h"

static int number_of(const char* name) {
  if (!strcmp(name, "bpf")) return SYS_bpf;
  if (!strcmp(name, "perf_event_open")) return SYS_perf_event_open;
  refuse("without: knows bpf and perf_event_open");
  return -1;
}

static void deny(int number, unsigned error) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error & SECCOMP_RET_DATA)),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) die("seccomp");
}

int main(int argc, char** argv) {
  if (argc < 4) refuse("usage: without SYSCALL[,SYSCALL] ERRNO COMMAND [ARGUMENTS...]");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) die("no_new_privs");
  for (char* name = strtok(argv[1], ","); name; name = strtok(NULL, ","))
    deny(number_of(name), (unsigned)atoi(argv[2]));
  execvp(argv[3], argv + 3);
  die(argv[3]);
}
