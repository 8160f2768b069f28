/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The walk of a user stack by frame pointers alone, for the build that serves kernels without
 * bpf_loop and bpf_task_pt_regs. Memory is read in chunks: one helper call for many frames.
 */
#ifndef DWELL_BPF_FRAME_POINTERS_H
#define DWELL_BPF_FRAME_POINTERS_H

#include "walk.h"

/* Makes the frame at `address` part of the chunk; returns its word in there, or -1: fault. */
static always_inline int load_frame(struct scratch* scratch, __u64 address) {
  struct walk* walk = &scratch->walk;
  __u64 offset = address - walk->chunk_start;
  if (walk->chunk_start == 0 || offset > walk->chunk_bytes - 16) {
    const void* from = (const void*)address;
    walk->chunk_start = address;
    walk->chunk_bytes = CHUNK_WORDS * 8;
    offset = 0;
    /* The chunk may cross into a page that is not there; the frame itself may be readable. */
    if (bpf_probe_read_user(scratch->chunk, CHUNK_WORDS * 8, from) != 0) {
      walk->chunk_bytes = 16;
      if (bpf_probe_read_user(scratch->chunk, 16, from) != 0) return -1;
    }
  }
  return offset / 8 & (CHUNK_WORDS - 1);
}

static always_inline __u32 step(struct scratch* scratch) {
  struct walk* walk = &scratch->walk;
  __u64 frame = walk->bp;
  if (frame == 0) return end_at_zero(walk, walk->by_pointer, DWELL_WALK_ROOT_POINTER);
  if (frame < walk->sp || frame & 7) return DWELL_WALK_NO_TABLES;
  int word = load_frame(scratch, frame);
  if (word < 0) return DWELL_WALK_FAULT;
  walk->bp = scratch->chunk[word];
  walk->ip = scratch->chunk[word + 1];
  walk->sp = frame + 16;
  note_pointer_step(scratch);
  if (walk->ip == 0) return end_at_zero(walk, walk->by_pointer - 1, DWELL_WALK_ROOT_ZERO);
  return keep_frame(scratch);
}

/* There are no tables in this build. */
static always_inline void find_tables(const struct dwell_process_key* process, struct walk* walk) {}

verified_once __u64 walk_current(struct scratch* scratch) {
  __u32 end = GO_ON;
  for (__u32 i = 0; i < DWELL_MAX_FRAMES && end == GO_ON; ++i) end = step(scratch);
  return finish_walk(scratch, end);
}

/* This build never reads another task's stack. */
static always_inline __u64 walk_other(struct task_struct* other, struct scratch* scratch) {
  return 0;
}

/* ... and walks each time. */
struct kept_walk;

static always_inline struct kept_walk* find_kept(const struct thread_state* state,
                                                 const struct scratch* scratch) {
  return 0;
}

static always_inline __u64 repeat_walk(struct kept_walk* kept, const struct thread_state* state,
                                       struct scratch* scratch) {
  return 0;
}

static always_inline void keep_walk(struct kept_walk* kept, const struct thread_state* state,
                                    const struct scratch* scratch, __u64 id) {}

#endif
