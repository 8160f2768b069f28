/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Where the time of a thread goes: its books, the rows, and the record that ends a life. Every
 * nanosecond between two events goes to exactly one place here; only the part inside the window
 * counts.
 */
#ifndef DWELL_BPF_BOOKS_H
#define DWELL_BPF_BOOKS_H

#include "kernel_stack.h"

/* The end of what counts: `now`, but not after the window. */
static always_inline __u64 not_after_window(__u64 now) {
  __u64 end = window.end_ns;
  return end && now > end ? end : now;
}

static always_inline __u64 not_before_window(__u64 since) {
  __u64 start = window.start_ns;
  return since < start ? start : since;
}

static always_inline void book_running(struct thread_state* state, __u64 now) {
  __u64 from = not_before_window(state->since_ns), to = not_after_window(now);
  if (state->gap && state->since_ns == 0) return; /* unknown: shows as lost */
  if (to > from) state->books.running_ns += to - from;
}

/* Bucket of the histogram: floor(log2(ns)) - DWELL_HISTOGRAM_SHIFT, clamped. */
static always_inline __u32 bucket_of(__u64 ns) {
  __u32 log = 0;
  if (ns >> 32) log += 32, ns >>= 32;
  if (ns >> 16) log += 16, ns >>= 16;
  if (ns >> 8) log += 8, ns >>= 8;
  if (ns >> 4) log += 4, ns >>= 4;
  if (ns >> 2) log += 2, ns >>= 2;
  if (ns >> 1) log += 1;
  if (log < DWELL_HISTOGRAM_SHIFT) return 0;
  log -= DWELL_HISTOGRAM_SHIFT;
  return log < DWELL_HISTOGRAM_BUCKETS ? log : DWELL_HISTOGRAM_BUCKETS - 1;
}

/* A waker that is faster than the sleeper waits for it, spinning. An older stamp woke nobody: it
 * came while the thread was running, and the one that ended its sleep was not told. */
enum { EARLY_WAKEUP_NS_MAX = 1000000 };

/*
 * Splits at the last waking. A waking before the switch-out is legal (the waker is faster than the
 * sleeper): no blocked time. A blocked thread that runs again without one was missed: all of it
 * stays blocked.
 */
static always_inline void split(struct thread_state* state, struct interval* interval) {
  __u64 length = interval->to - interval->from, waking = state->waking_ns;
  if (waking + EARLY_WAKEUP_NS_MAX < state->since_ns) waking = 0;
  if (!is_blocked_class(state->wait_class)) {
    interval->run_queue_ns = length;
  } else if (waking == 0) {
    interval->blocked_ns = length;
    if (!(interval->censored & DWELL_CENSORED_RIGHT)) count(DWELL_COUNT_MISSED_WAKEUP, length);
  } else if (waking <= interval->from) {
    interval->run_queue_ns = length;
    if (waking <= state->since_ns) count(DWELL_COUNT_EARLY_WAKEUP, 0);
  } else if (waking >= interval->to) {
    interval->blocked_ns = length;
  } else {
    interval->blocked_ns = waking - interval->from;
    interval->run_queue_ns = interval->to - waking;
  }
}

static always_inline void add_to_row(struct dwell_row* row, const struct interval* interval) {
  __u64 length = interval->to - interval->from;
  row->count++;
  row->blocked_ns += interval->blocked_ns;
  row->run_queue_ns += interval->run_queue_ns;
  if (length > row->max_ns) row->max_ns = length;
  row->histogram[bucket_of(length) & (DWELL_HISTOGRAM_BUCKETS - 1)]++;
}

static always_inline bool wanted(const struct thread_state* state,
                                 const struct interval* interval) {
  if (!(config.class_mask >> (state->wait_class & 31) & 1)) return false;
  if (config.state_mask) {
    __u32 state_bits = state->raw_state ? state->raw_state : 1u << 31;
    if (!(config.state_mask & state_bits)) return false;
  }
  __u64 length = interval->to - interval->from;
  /* What the window cut off is at least this long: a minimum must not hide it. */
  if (length < config.min_ns && !interval->censored) return false;
  return length <= config.max_ns;
}

static always_inline void book_interval(struct thread_state* state,
                                        const struct interval* interval) {
  struct dwell_books* books = &state->books;
  if (interval->censored) {
    books->censored_blocked_ns += interval->blocked_ns;
    books->censored_run_queue_ns += interval->run_queue_ns;
  } else {
    books->blocked_ns += interval->blocked_ns;
    books->run_queue_ns += interval->run_queue_ns;
  }
  books->intervals++;
  if (is_blocked_class(state->wait_class)) books->blocked_intervals++;
}

static always_inline void charge_overflow(struct thread_state* state,
                                          const struct interval* interval) {
  __u32 wait_class = state->wait_class;
  __u64 length = interval->to - interval->from;
  struct dwell_row* row = bpf_map_lookup_elem(&overflow, &wait_class);
  if (row) add_to_row(row, interval);
  state->books.overflow_ns += length;
  state->books.overflow_intervals++;
  count(DWELL_LOSS_ROWS_FULL, length);
}

/*
 * Plain adds are enough: a row belongs to one life of one thread, and only the CPU that switches
 * this thread in (or the closing iterator, after the window) writes to it; the run-queue locks
 * order them.
 */
verified_alone int charge_row(struct thread_state* state, const struct interval* interval,
                              __u64 kernel_stack) {
  if (!state || !interval) return 0;
  struct dwell_row_key key = {
      .user_stack = state->user_stack,
      .kernel_stack = kernel_stack,
      .thread = state->thread,
      .state = state->raw_state,
      .cause = state->cause,
      .wait_class = state->wait_class,
      .censored = interval->censored,
  };
  __u32 zero = 0;
  void* rows = bpf_map_lookup_elem(&epoch, &zero);
  if (!rows) return 0;
  struct dwell_row* row = bpf_map_lookup_elem(rows, &key);
  if (!row && bpf_map_update_elem(rows, &key, (const void*)&empty_row, BPF_NOEXIST) == 0) {
    count(DWELL_COUNT_ROWS_INSERTED, 0);
    row = bpf_map_lookup_elem(rows, &key);
  }
  if (row)
    add_to_row(row, interval);
  else
    charge_overflow(state, interval);
  return 0;
}

/*
 * Cuts the interval that ends at `now` to the window. False: no part of it lies inside, or the
 * probe cannot vouch for it (state was full before): that part of the thread's time shows as lost.
 */
static always_inline bool cut(struct thread_state* state, __u64 now, struct interval* interval) {
  interval->from = not_before_window(state->since_ns);
  interval->to = not_after_window(now);
  interval->blocked_ns = interval->run_queue_ns = 0;
  interval->censored = 0;
  if (interval->to <= interval->from || (state->gap && state->since_ns == 0)) return false;
  if (state->since_ns < interval->from) interval->censored |= DWELL_CENSORED_LEFT;
  if (now > interval->to) interval->censored |= DWELL_CENSORED_RIGHT;
  split(state, interval);
  return true;
}

static always_inline __u8 record_flags(struct task_struct* task, const struct thread_state* state) {
  return (is_kernel_thread(task) ? DWELL_THREAD_KERNEL : 0) |
         (state->born ? DWELL_THREAD_BORN : 0) |
         (state->tid == state->process.pid ? DWELL_THREAD_FIRST : 0) |
         (state->gap ? DWELL_THREAD_GAP : 0);
}

/* Describes this life, which ended at `now`. False: no part of it lies in the window. */
static always_inline bool write_record(struct task_struct* task, const struct thread_state* state,
                                       __u64 now, __u8 ended, struct dwell_thread_record* record) {
  record->thread = state->thread;
  record->process = state->process;
  record->start_boottime_ns = state->start_boottime_ns;
  record->birth_ns = not_before_window(state->birth_ns);
  record->end_ns = not_after_window(now);
  record->books = state->books;
  record->tid = state->tid;
  struct task_struct* parent = READ(task, real_parent);
  record->parent_pid = READ(parent, tgid);
  record->ended = ended;
  record->flags = record_flags(task, state);
  record->zero = 0;
  record->zero2 = 0;
  /* A name given by another thread does not begin a new life: the last one counts. */
  if (ended == DWELL_END_EXITED || ended == DWELL_END_ALIVE)
    read_comm(task, record->comm);
  else
    __builtin_memcpy(record->comm, state->comm, DWELL_COMM_BYTES);
  struct task_struct* leader = READ(task, group_leader);
  read_comm(leader, record->process_comm);
  return record->end_ns > record->birth_ns;
}

static always_inline void fold_record(const struct dwell_thread_record* record) {
  __u32 zero = 0;
  __u64 alive = record->end_ns - record->birth_ns;
  struct dwell_lost_threads* lost = bpf_map_lookup_elem(&lost_threads, &zero);
  count(DWELL_LOSS_THREAD_RECORDS, alive);
  if (!lost) return;
  lost->threads++;
  lost->alive_ns += alive;
  __u64* sum = (__u64*)&lost->books;
  const __u64* term = (const __u64*)&record->books;
  for (__u32 i = 0; i < sizeof(struct dwell_books) / 8; ++i) sum[i] += term[i];
}

/* Sends the record of a life that ended at `now`; what does not fit into the ring is folded into
 * one sum. */
static __attribute__((noinline)) void end_life(struct task_struct* task, struct thread_state* state,
                                               __u64 now, __u8 ended, struct scratch* scratch) {
  struct dwell_thread_record* record = &scratch->record;
  if (!write_record(task, state, now, ended, record)) return;
  if (bpf_ringbuf_output(&threads, record, sizeof(*record), BPF_RB_NO_WAKEUP) != 0)
    fold_record(record);
}

/* The running thread goes on under another name or as another program. */
static always_inline void begin_life(struct task_struct* task, struct thread_state* state,
                                     __u64 now) {
  static const struct dwell_books empty = {};
  state->books = empty;
  state->birth_ns = now;
  state->since_ns = now;
  state->cpu_time_ns = READ(task, se.sum_exec_runtime);
  state->born = 1;
  state->gap = 0;
  state->life++;
  describe_life(task, state);
}

#endif
