/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Single intervals for `record --timeline`, sent beside the rows. Without it the verifier finds the
 * calls unreachable (config is constant when it looks) and drops them; the map is not created.
 */
#ifndef DWELL_BPF_TIMELINE_H
#define DWELL_BPF_TIMELINE_H

#include "books.h"

/* What the window cut off is at least as long as its part inside: a minimum must not hide it. */
static always_inline void send_interval(void* ctx, const struct thread_state* state,
                                        __u64 kernel_stack, struct scratch* scratch) {
  const struct interval* interval = &scratch->interval;
  __u64 length = interval->to - interval->from;
  if (length < config.timeline_min_ns && !interval->censored) return;
  struct dwell_interval_record* record = &scratch->interval_record;
  record->thread = state->thread;
  record->user_stack = state->user_stack;
  record->kernel_stack = kernel_stack;
  record->start_ns = interval->from;
  record->blocked_ns = interval->blocked_ns;
  record->run_queue_ns = interval->run_queue_ns;
  record->state = state->raw_state;
  record->cpu = bpf_get_smp_processor_id();
  record->cause = state->cause;
  record->wait_class = state->wait_class;
  record->censored = interval->censored;
  record->zero = 0;
  count(DWELL_COUNT_TIMELINE, length);
  if (bpf_perf_event_output(ctx, &timeline, BPF_F_CURRENT_CPU, record, sizeof(*record)) != 0)
    count(DWELL_LOSS_TIMELINE_RING, length);
}

#endif
