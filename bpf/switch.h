/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * What happens to the books of a thread when it leaves the CPU and when it comes back, told or not,
 * and after the end of the window. Called by the programs of off_cpu.bpf.c.
 */
#ifndef DWELL_BPF_SWITCH_H
#define DWELL_BPF_SWITCH_H

#include "timeline.h"

/* The kernel stack of a thread that is about to run, if its class wants one. */
static always_inline __u64 kernel_stack_for(struct task_struct* task, struct thread_state* state,
                                            struct scratch* scratch, __u64 now) {
  if (!config.kernel_stacks) return DWELL_STACK_NONE;
  if (!is_blocked_class(state->wait_class) && !config.runnable_kernel_stacks)
    return DWELL_STACK_NOT_TAKEN;
  return take_kernel_stack(task, state, scratch, now);
}

/* Books the interval that ends at `now`; `kernel_stack` 0: take it if the interval is wanted. */
static always_inline void close_interval(void* ctx, struct task_struct* task,
                                         struct thread_state* state, struct scratch* scratch,
                                         __u64 now, __u64 kernel_stack) {
  struct interval* interval = &scratch->interval;
  if (!cut(state, now, interval)) return;
  book_interval(state, interval);
  if (wanted(state, interval)) {
    if (kernel_stack == 0) kernel_stack = kernel_stack_for(task, state, scratch, now);
    charge_row(state, interval, kernel_stack);
    if (config.timeline) send_interval(ctx, state, kernel_stack, scratch);
    return;
  }
  __u64 length = interval->to - interval->from;
  state->books.filtered_ns += length;
  state->books.filtered_intervals++;
  count(DWELL_COUNT_FILTERED, length);
}

/*
 * Some kernels do not tell every switch: where a protected thread leaves the CPU, no program runs.
 * Then `task` came on unseen, and leaves now. The scheduler's account of its CPU time tells since
 * when it has been running.
 */
static always_inline void work_out_switch_in(void* ctx, struct task_struct* task,
                                             struct thread_state* state, __u64 cpu_time, __u64 now,
                                             struct scratch* scratch) {
  __u64 ran = cpu_time - state->cpu_time_ns, came_on = now - ran;
  if (came_on < state->since_ns || came_on > now) came_on = state->since_ns;
  __u64 from = not_before_window(state->since_ns);
  count(DWELL_COUNT_MISSED_SWITCH_IN, came_on > from ? came_on - from : 0);
  close_interval(ctx, task, state, scratch, came_on, DWELL_STACK_MISSED);
  state->since_ns = came_on;
  state->waking_ns = 0;
}

/* `task` left the CPU `unseen` times since then: what it did not run, it was away. */
static always_inline void lose_absence(struct task_struct* task, struct thread_state* state,
                                       __u64 unseen, __u64 now) {
  __u64 from = not_before_window(state->since_ns), to = not_after_window(now);
  __u64 cpu_time = READ(task, se.sum_exec_runtime), ran = cpu_time - state->cpu_time_ns;
  __u64 away = to > from ? to - from : 0;
  if (ran > away) ran = away;
  state->books.running_ns += ran;
  state->books.lost_ns += away - ran;
  state->cpu_time_ns = cpu_time;
  state->departures += unseen;
  count_many(DWELL_LOSS_MISSED_SWITCH_OUT, unseen, away - ran);
}

/*
 * Books the time since `task` came on. It may have left and come back unseen, which the scheduler's
 * count tells. `leaving`: 1 if it leaves now, seen.
 */
static always_inline void book_stretch(struct task_struct* task, struct thread_state* state,
                                       __u32 leaving, __u64 now) {
  __s64 unseen = departures_of(task) - leaving - state->departures;
  if (unseen > 0)
    lose_absence(task, state, unseen, now);
  else
    book_running(state, now);
}

/*
 * The clocks of two CPUs may differ by a little. The time of a thread goes on from where it was:
 * nothing counts twice, and its books add up.
 */
static always_inline __u64 not_backwards(const struct thread_state* state, __u64 now) {
  if (now >= state->since_ns) return now;
  count(DWELL_COUNT_CLOCK_ANOMALY, state->since_ns - now);
  return state->since_ns;
}

static always_inline void switch_out(void* ctx, struct task_struct* task, bool preempt,
                                     __u32 prev_state, __u64 now, struct scratch* scratch) {
  struct thread_state* state = get_state(task, PHASE_RUNNING, DWELL_CLASS_NONE);
  if (!state || state->phase == PHASE_ENDED) return;
  count(DWELL_COUNT_SWITCHES, 0);
  now = not_backwards(state, now);
  __u64 cpu_time = READ(task, se.sum_exec_runtime);
  if (state->phase == PHASE_OFF) work_out_switch_in(ctx, task, state, cpu_time, now, scratch);
  book_stretch(task, state, 1, now);
  state->cpu_time_ns = cpu_time;
  state->departures = departures_of(task);
  if (prev_state & TASK_DEAD) {
    end_life(task, state, now, DWELL_END_EXITED, scratch);
    state->phase = PHASE_ENDED;
    forget_state(task);
    return;
  }
  read_regs(task, &scratch->regs);
  classify(task, state, preempt, prev_state, &scratch->regs);
  state->since_ns = now;
  state->phase = PHASE_OFF;
  state->user_stack = DWELL_STACK_NONE;
  if (config.user_stacks && has_user_side(task) &&
      config.class_mask >> (state->wait_class & 31) & 1)
    state->user_stack = take_stack(0, state, scratch, now);
  note_kernel_stack(ctx, state, scratch, now);
}

static always_inline void switch_in(void* ctx, struct task_struct* task, __u64 now,
                                    struct scratch* scratch) {
  struct thread_state* state = get_state(task, PHASE_OFF, DWELL_CLASS_RUNNABLE);
  if (!state || state->phase == PHASE_ENDED) return;
  now = not_backwards(state, now);
  __u64 unseen = departures_of(task) - state->departures;
  if (state->phase == PHASE_OFF && unseen == 0) {
    close_interval(ctx, task, state, scratch, now, 0);
  } else {
    if (state->phase == PHASE_OFF)
      work_out_switch_in(ctx, task, state, READ(task, se.sum_exec_runtime), now, scratch);
    lose_absence(task, state, unseen, now);
  }
  state->phase = PHASE_RUNNING;
  state->since_ns = now;
  state->waking_ns = 0;
}

/*
 * True for exactly one caller: the switch or the closing iterator, which may be at it at the same
 * time. Whoever gets it books the last stretch and then sets PHASE_CLOSED.
 */
static always_inline bool claim(struct thread_state* state, __u32 phase) {
#ifdef DWELL_RAW_TP
  if (state->phase != phase) return false;
  state->phase = PHASE_CLOSING;
  return true;
#else
  return __sync_val_compare_and_swap(&state->phase, phase, PHASE_CLOSING) == phase;
#endif
}

static always_inline void set_closed(struct thread_state* state) {
  barrier();
  *(volatile __u32*)&state->phase = PHASE_CLOSED;
}

/*
 * After the window nothing counts any more, but some things would be gone for the closing iterator:
 * the dead, the stack of a thread that wakes up, and whether one that leaves had left unseen.
 */
static always_inline void switch_after_window(void* ctx, struct task_struct* prev,
                                              struct task_struct* next, __u32 prev_state, __u64 now,
                                              struct scratch* scratch) {
  struct thread_state* state = maybe_target(next) ? find_state(next) : 0;
  if (state && claim(state, PHASE_OFF)) {
    close_interval(ctx, next, state, scratch, now, 0);
    set_closed(state);
  }
  state = maybe_target(prev) ? find_state(prev) : 0;
  if (!state || state->phase == PHASE_ENDED) return;
  if (claim(state, PHASE_RUNNING)) {
    book_stretch(prev, state, 1, now);
    set_closed(state);
  }
  if (!(prev_state & TASK_DEAD)) return;
  end_life(prev, state, now, DWELL_END_ALIVE, scratch);
  state->phase = PHASE_ENDED;
  forget_state(prev);
}

#endif
