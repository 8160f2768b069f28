/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* User stacks: taken, and sent once each. How they are walked is in unwind.h and
 * kept_walks.h. */
#ifndef DWELL_BPF_USER_STACK_H
#define DWELL_BPF_USER_STACK_H

#ifdef DWELL_RAW_TP
#include "walks_anew.h"
#else
#include "kept_walks.h"
#include "python.h"
#endif

/*
 * Sends the stack in `scratch` unless it was sent before. Returns its id, or the placeholder that
 * takes its time. *known becomes the id once user space has the stack.
 */
static always_inline __u64 remember_stack(struct scratch* scratch, __u64 id, __u64 now,
                                          __u32 full_counter, __u64* known) {
  __u8 sent = STACK_SENT;
  if (bpf_map_lookup_elem(&known_stacks, &id)) {
    *known = id;
    return id;
  }
  long failure = bpf_map_update_elem(&known_stacks, &id, &sent, BPF_NOEXIST);
  if (failure == -17 /* EEXIST: another CPU was faster */) return id;
  if (failure) {
    count(full_counter, 0);
    return DWELL_STACK_LOST_FULL;
  }
  struct dwell_stack_record* record = &scratch->stack;
  record->hash = id;
  record->first_seen_ns = now;
  __u32 bytes = DWELL_STACK_RECORD_HEADER_BYTES + (record->count & DWELL_MAX_FRAMES) * 8;
  if (bpf_ringbuf_output(&stacks, record, bytes, BPF_RB_NO_WAKEUP) == 0) {
    *known = id;
  } else {
    bpf_map_delete_elem(&known_stacks, &id); /* to be sent at the next sight */
    count(DWELL_COUNT_STACK_RING_FULL, 0);
  }
  return id;
}

/* The frames of compiled code. */
static always_inline __u64 take_native_stack(struct task_struct* other, struct thread_state* state,
                                             struct scratch* scratch, __u64 now) {
  __u64 hash = mix(mix(config.hash_seed, state->process.pid), state->process.start_boottime_ns);
  hash = mix(hash, state->process.exec_id);
  begin_walk(scratch, hash);
  find_tables(&state->process, &scratch->walk);
  struct kept_walk* kept = other ? 0 : find_kept(state, scratch);
  __u64 id = repeat_walk(kept, state, scratch);
  if (id) return id;
  id = stack_id(other ? walk_other(other, scratch) : walk_current(refer_to(scratch)));
  __u64 counted_under = id;
  if (id != state->known_stack) {
    scratch->stack.process = state->process;
    counted_under =
        remember_stack(scratch, id, now, DWELL_LOSS_USER_STACKS_FULL, &state->known_stack);
  }
  keep_walk(kept, state, scratch, id);
  return counted_under;
}

/* The user stack of the current task (`other` == 0), or of `other` in a sleepable iterator. */
static always_inline __u64 take_user_stack(struct task_struct* other, struct thread_state* state,
                                           struct scratch* scratch, __u64 now) {
  __u64 id = take_native_stack(other, state, scratch, now);
#ifndef DWELL_RAW_TP
  if (scratch->walk.python_layout && id >= DWELL_STACK_FIRST) {
    scratch->python_stack.process = state->process;
    scratch->python_stack.first_seen_ns = now;
    if (other) return take_other_python(other, scratch, state, id);
    return take_python(scratch, state, id);
  }
#endif
  return id;
}

/*
 * Also notes whether better tables would make it longer. Without tables a frame pointer of 0 need
 * not be a root.
 */
static always_inline __u64 take_stack(struct task_struct* other, struct thread_state* state,
                                      struct scratch* scratch, __u64 now) {
  __u64 id = take_user_stack(other, state, scratch, now);
  state->tables_version = scratch->walk.version;
  state->stack_cut = scratch->walk.version == 0 || scratch->walk.by_pointer > 0 ||
                     scratch->stack.end >= DWELL_WALK_NO_TABLES;
  return id;
}

#endif
