/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* Why a thread leaves the CPU: class and cause, decided at switch-out. The order of the tests
 * matters. */
#ifndef DWELL_BPF_CLASSIFY_H
#define DWELL_BPF_CLASSIFY_H

#include "task.h"

enum {
  X86_SCHED_YIELD = 24,
  X86_COMPAT_SCHED_YIELD = 158,
  X86_USER32_CS = 0x23,
  X86_THREAD_BYTES = 16384,
};

static always_inline __u32 live_state(struct task_struct* task) {
  if (bpf_core_field_exists(task->__state)) return READ(task, __state);
  struct task_struct___with_state* old = (void*)task;
  return (__u32)BPF_CORE_READ(old, state);
}

/* Where the user-mode registers of `task` are saved. */
static always_inline struct pt_regs___x86* saved_regs(struct task_struct* task) {
#ifdef DWELL_RAW_TP
  __u64 pad = bpf_core_type_exists(struct fred_ss) ? 16 : 0;
  return BPF_CORE_READ(task, stack) + X86_THREAD_BYTES - pad -
         bpf_core_type_size(struct pt_regs___x86);
#else
  return (void*)bpf_task_pt_regs(task);
#endif
}

static always_inline void read_regs(struct task_struct* task, struct user_regs* regs) {
  struct pt_regs___x86* saved = saved_regs(task);
  regs->ip = READ(saved, ip);
  regs->sp = READ(saved, sp);
  regs->bp = READ(saved, bp);
  regs->bx = READ(saved, bx);
  regs->orig_ax = READ(saved, orig_ax);
  regs->cs = READ(saved, cs);
}

/* Threads that have user registers of their own. io_uring workers are user threads without. */
static always_inline bool has_user_side(struct task_struct* task) {
  return !(READ(task, flags) & (PF_KTHREAD | PF_IO_WORKER));
}

static always_inline __u16 entry_cause(struct task_struct* task, const struct user_regs* regs) {
  if (!has_user_side(task)) return DWELL_CAUSE_KTHREAD;
  if ((__s64)regs->orig_ax < 0) return DWELL_CAUSE_FAULT;
  return (regs->orig_ax & 0x3fff) | (regs->cs == X86_USER32_CS ? DWELL_CAUSE_COMPAT : 0);
}

static always_inline __u8 blocked_class(__u32 state, bool in_iowait) {
  if (state & TASK_FROZEN) return DWELL_CLASS_FROZEN;
  if (state & TASK_STOPPED_BIT) return DWELL_CLASS_STOPPED;
  if (state & TASK_TRACED_BIT) return DWELL_CLASS_TRACED;
  if (state & TASK_PARKED) return DWELL_CLASS_PARKED;
  if (state & TASK_RTLOCK_WAIT) return DWELL_CLASS_RTLOCK;
  if ((state & (TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE)) && in_iowait) return DWELL_CLASS_IO;
  if (state & TASK_INTERRUPTIBLE) return DWELL_CLASS_INTERRUPTIBLE;
  if (!(state & TASK_UNINTERRUPTIBLE)) return DWELL_CLASS_OTHER;
  if (state & TASK_NOLOAD) return DWELL_CLASS_IDLE_KTHREAD;
  return state & TASK_WAKEKILL ? DWELL_CLASS_KILLABLE : DWELL_CLASS_UNINTERRUPTIBLE;
}

static always_inline bool in_iowait(struct task_struct* task) {
#ifdef DWELL_RAW_TP
  return BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait);
#else
  return BPF_CORE_READ_BITFIELD(task, in_iowait);
#endif
}

static always_inline bool is_blocked_class(__u8 wait_class) {
  return wait_class < DWELL_CLASS_PREEMPTED;
}

/*
 * `prev_state` is the word that the scheduler decided on. The live word can only be 0 for a thread
 * that stays on the run queue (a signal was pending): a remote waker leaves WAKING there until the
 * thread is off its CPU. User-mode preemption is not a yield: it comes through schedule() on the
 * way to user mode, preempt == false.
 */
static always_inline void classify(struct task_struct* task, struct thread_state* state,
                                   bool preempt, __u32 prev_state, const struct user_regs* regs) {
  __u32 masked = prev_state & ~TASK_FREEZABLE;
  __u16 cause = entry_cause(task, regs);
  state->raw_state = masked;
  if (!preempt && masked != 0 && live_state(task) != 0) {
    state->wait_class = blocked_class(masked, in_iowait(task));
    state->cause = cause;
    return;
  }
  if (preempt) {
    state->wait_class = DWELL_CLASS_PREEMPTED_KERNEL;
  } else if (masked != 0) {
    state->wait_class = DWELL_CLASS_SIGNAL;
  } else if (cause == X86_SCHED_YIELD || cause == (X86_COMPAT_SCHED_YIELD | DWELL_CAUSE_COMPAT)) {
    state->wait_class = DWELL_CLASS_YIELDED;
  } else {
    state->wait_class = DWELL_CLASS_PREEMPTED;
  }
  state->cause = cause == DWELL_CAUSE_KTHREAD || state->wait_class == DWELL_CLASS_YIELDED ||
                         state->wait_class == DWELL_CLASS_SIGNAL
                     ? cause
                     : DWELL_CAUSE_PREEMPTED;
}

#endif
