/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The few kernel types that the probe reads, by name only: libbpf relocates every access to the
 * running kernel (CO-RE), so neither the order nor the completeness of the members matters here.
 */
#ifndef DWELL_BPF_CORE_TYPES_H
#define DWELL_BPF_CORE_TYPES_H

/* In this order: bpf_helpers.h uses the types of bpf.h. */
/* clang-format off */
#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
/* clang-format on */

#include "abi/off_cpu.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_struct {
  unsigned long sp;
};

struct mm_struct;

struct upid {
  int nr;
};

struct pid {
  unsigned int level;
  struct upid numbers[1]; /* one for each pid namespace that it is seen in, its own last */
};

struct sched_entity {
  __u64 sum_exec_runtime;
};

struct task_struct {
  unsigned int __state; /* since 5.14 */
  unsigned int flags;
  int exit_state;
  int pid;
  int tgid;
  int on_cpu;
  struct sched_entity se;
  unsigned long nvcsw; /* times that it left the CPU: of its own accord, and preempted */
  unsigned long nivcsw;
  unsigned int in_execve : 1;
  unsigned int in_iowait : 1;
  __u64 start_boottime;
  __u64 self_exec_id;
  struct task_struct* group_leader;
  struct task_struct* real_parent;
  struct mm_struct* mm;
  struct pid* thread_pid;
  void* stack;
  struct thread_struct thread;
  char comm[16];
};

/* Before 5.14. */
struct task_struct___with_state {
  volatile long state;
};

/* x86-64 user registers as saved at the top of the kernel stack. */
struct pt_regs___x86 {
  unsigned long bp;
  unsigned long bx;
  unsigned long orig_ax;
  unsigned long ip;
  unsigned long cs;
  unsigned long sp;
};

struct fred_ss; /* its existence tells that the kernel pads the top of the stack */

struct bpf_iter_meta {
  struct seq_file* seq;
};

struct bpf_iter__task {
  struct bpf_iter_meta* meta;
  struct task_struct* task;
};

#pragma clang attribute pop

/* include/linux/sched.h; the numbers are the same on every kernel from 4.14 that has the flag. */
enum {
  TASK_RUNNING = 0x0,
  TASK_INTERRUPTIBLE = 0x1,
  TASK_UNINTERRUPTIBLE = 0x2,
  TASK_STOPPED_BIT = 0x4,
  TASK_TRACED_BIT = 0x8,
  TASK_PARKED = 0x40,
  TASK_DEAD = 0x80,
  TASK_WAKEKILL = 0x100,
  TASK_WAKING = 0x200,
  TASK_NOLOAD = 0x400,
  TASK_NEW = 0x800,
  TASK_RTLOCK_WAIT = 0x1000,
  TASK_FREEZABLE = 0x2000,
  TASK_FROZEN = 0x8000,

  PF_IDLE = 0x2,
  PF_IO_WORKER = 0x10,
  PF_KTHREAD = 0x200000,
};

#endif
