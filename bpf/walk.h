/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What both walkers of user stacks share: how a walk begins, takes a frame, and ends. */
#ifndef DWELL_BPF_WALK_H
#define DWELL_BPF_WALK_H

#include "classify.h"

enum { GO_ON = DWELL_WALK_END_COUNT /* not an end */ };

static always_inline __u64 stack_id(__u64 hash) {
  return hash < DWELL_STACK_FIRST ? hash + DWELL_STACK_FIRST : hash;
}

/* Adds the frame that the walk came to. */
static always_inline __u32 keep_frame(struct scratch* scratch) {
  __u32 count = scratch->stack.count;
  if (count >= DWELL_MAX_FRAMES) return DWELL_WALK_TRUNCATED;
  /* Of an interrupted caller, one more than its address: see dwell_stack_record. */
  __u64 ip = scratch->walk.ip + (count > 0 && !scratch->walk.is_return);
  scratch->stack.ips[count] = ip;
  scratch->stack.count = count + 1;
  scratch->walk.hash = mix(scratch->walk.hash, ip);
  return GO_ON;
}

/* From the last frame to its caller. */
static always_inline void note_pointer_step(struct scratch* scratch) {
  __u32 frame = scratch->stack.count - 1;
  scratch->stack.pointer_steps[frame / 64 & (DWELL_STEP_WORDS - 1)] |= 1ull << (frame & 63);
  scratch->walk.by_pointer++;
}

/* At the leaf. */
static always_inline void begin_walk(struct scratch* scratch, __u64 hash) {
  const struct user_regs* regs = &scratch->regs;
  struct walk* walk = &scratch->walk;
  walk->ip = regs->ip;
  walk->sp = regs->sp;
  walk->bp = regs->bp;
  walk->bx = regs->bx;
  walk->hash = hash;
  walk->chunk_start = 0;
  walk->mappings = walk->version = walk->python_layout = 0;
  walk->by_row = walk->by_pointer = 0;
  walk->loads = walk->leaf_used = 0;
  walk->bp_load = walk->bx_load = FROM_LEAF;
  walk->stack_changes = 0;
  walk->is_leaf = 1;
  /* In a system call ip is behind the instruction, which may be the last of its function. */
  walk->is_return = (__s64)regs->orig_ax >= 0;
  scratch->stack.count = 0;
  scratch->stack.flags = DWELL_STACK_USER;
  scratch->stack.pointer_steps[0] = scratch->stack.pointer_steps[1] = 0;
  keep_frame(scratch);
}

/*
 * At a frame pointer or a return address of 0, behind `steps` frames that frame pointers led to: is
 * it the root? The outermost function has a frame pointer of 0. But code without frame pointers,
 * libc first of all, keeps anything there: of a leaf that nothing is known about it says nothing.
 */
static always_inline __u32 end_at_zero(const struct walk* walk, __u32 steps, __u32 root) {
  return walk->mappings || steps > 0 ? root : DWELL_WALK_NO_TABLES;
}

static always_inline void count_walk(const struct walk* walk, __u32 end) {
  count(DWELL_COUNT_WALK_END + end, 0);
  count_many(DWELL_COUNT_FRAMES_BY_ROW, walk->by_row, 0);
  count_many(DWELL_COUNT_FRAMES_BY_POINTER, walk->by_pointer, 0);
  if (end > DWELL_WALK_ROOT_POINTER) count(DWELL_COUNT_STACK_INCOMPLETE, 0);
  if (end == DWELL_WALK_TRUNCATED) count(DWELL_COUNT_STACK_TRUNCATED, 0);
}

/* Returns the hash of the stack. */
static always_inline __u64 finish_walk(struct scratch* scratch, __u32 end) {
  if (end >= DWELL_WALK_END_COUNT) end = DWELL_WALK_TRUNCATED;
  scratch->stack.end = end;
  if (end <= DWELL_WALK_ROOT_POINTER) scratch->stack.flags |= DWELL_STACK_COMPLETE;
  if (end == DWELL_WALK_TRUNCATED) scratch->stack.flags |= DWELL_STACK_TRUNCATED;
  count_walk(&scratch->walk, end);
  /* Equal frames that ended otherwise are another stack: one may be whole, the other not. */
  return mix(scratch->walk.hash, end);
}

#endif
