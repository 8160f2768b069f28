/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * User stacks. walk_user_stack is the one function to replace when a better unwinder comes; it
 * follows frame pointers. Memory is read in chunks: one helper call for many frames.
 */
#ifndef DWELL_BPF_USER_STACK_H
#define DWELL_BPF_USER_STACK_H

#include "classify.h"

/* Reads `bytes` at `address` of the current task, or in a sleepable iterator of `task`. 0 on
 * success. */
static always_inline long read_user(struct task_struct* task, void* to, __u32 bytes,
                                    __u64 address) {
#ifndef DWELL_RAW_TP
  if (task) return bpf_copy_from_user_task(to, bytes, (const void*)address, task, 0);
#endif
  (void)task;
  return bpf_probe_read_user(to, bytes, (const void*)address);
}

/* Makes [frame_pointer, +16) part of the chunk; returns how many bytes it now holds from
 * `frame_pointer`, 0: fault. */
static always_inline __u32 load_chunk(struct task_struct* task, struct scratch* scratch,
                                      __u64 frame_pointer) {
  if (read_user(task, scratch->chunk, CHUNK_WORDS * 8, frame_pointer) == 0) return CHUNK_WORDS * 8;
  /* The chunk may cross into a page that is not there; the frame itself may still be readable. */
  if (read_user(task, scratch->chunk, 16, frame_pointer) == 0) return 16;
  return 0;
}

/*
 * Follows frame pointers from `regs` into scratch->stack (ips, count, flags) and returns the hash,
 * seeded by the process. A walk is complete when it meets a zero frame pointer: what _start and
 * clone leave for the root frame.
 */
static always_inline __u64 walk_user_stack(struct task_struct* other, const struct user_regs* regs,
                                           struct scratch* scratch, __u64 hash) {
  __u64 frame_pointer = regs->bp, lowest = regs->sp, chunk_start = 0;
  __u32 chunk_bytes = 0;
  scratch->stack.ips[0] = regs->ip;
  scratch->stack.count = 1;
  scratch->stack.flags = DWELL_STACK_USER;
  hash = mix(hash, regs->ip);
  for (__u32 i = 1; i < DWELL_MAX_FRAMES + 1; ++i) {
    if (frame_pointer == 0) {
      scratch->stack.flags |= DWELL_STACK_COMPLETE;
      return hash;
    }
    if (frame_pointer < lowest || frame_pointer & 7) return hash;
    if (i == DWELL_MAX_FRAMES) {
      scratch->stack.flags |= DWELL_STACK_TRUNCATED;
      return hash;
    }
    __u64 offset = frame_pointer - chunk_start;
    if (chunk_start == 0 || offset > chunk_bytes - 16) {
      chunk_bytes = load_chunk(other, scratch, frame_pointer);
      if (chunk_bytes == 0) return hash;
      chunk_start = frame_pointer;
      offset = 0;
    }
    __u32 word = (__u32)(offset >> 3) & (CHUNK_WORDS - 1);
    __u64 next = scratch->chunk[word], return_address = scratch->chunk[word + 1];
    if (return_address == 0) {
      scratch->stack.flags |= DWELL_STACK_COMPLETE;
      return hash;
    }
    scratch->stack.ips[i] = return_address;
    scratch->stack.count = i + 1;
    hash = mix(hash, return_address);
    lowest = frame_pointer + 16;
    frame_pointer = next;
  }
  return hash;
}

verified_once __u64 walk_current(const struct user_regs* regs, struct scratch* scratch,
                                 __u64 hash) {
  return regs && scratch ? walk_user_stack(0, regs, scratch, hash) : 0;
}

static always_inline __u64 stack_id(__u64 hash) {
  return hash < DWELL_STACK_FIRST ? hash + DWELL_STACK_FIRST : hash;
}

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
  record->zero = 0;
  __u32 bytes = DWELL_STACK_RECORD_HEADER_BYTES + (record->count & DWELL_MAX_FRAMES) * 8;
  if (bpf_ringbuf_output(&stacks, record, bytes, BPF_RB_NO_WAKEUP) == 0) {
    *known = id;
  } else {
    bpf_map_delete_elem(&known_stacks, &id); /* to be sent at the next sight */
    count(DWELL_COUNT_STACK_RING_FULL, 0);
  }
  return id;
}

/* The user stack of the current task (`other` == 0), or of `other` in a sleepable iterator. */
static always_inline __u64 take_user_stack(struct task_struct* other, struct thread_state* state,
                                           const struct user_regs* regs, struct scratch* scratch,
                                           __u64 now) {
  __u64 hash = mix(mix(config.hash_seed, state->process.pid), state->process.start_boottime_ns);
  hash = mix(hash, state->process.exec_id);
  hash = other ? walk_user_stack(other, regs, scratch, hash) : walk_current(regs, scratch, hash);
  if (!(scratch->stack.flags & DWELL_STACK_COMPLETE)) count(DWELL_COUNT_STACK_INCOMPLETE, 0);
  if (scratch->stack.flags & DWELL_STACK_TRUNCATED) count(DWELL_COUNT_STACK_TRUNCATED, 0);
  __u64 id = stack_id(hash);
  if (id == state->known_stack) return id;
  scratch->stack.process = state->process;
  return remember_stack(scratch, id, now, DWELL_LOSS_USER_STACKS_FULL, &state->known_stack);
}

#endif
