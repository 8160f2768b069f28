/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Walks that need not be done again. A thread mostly waits where it waited before, with the same
 * callers. What a walk comes to depends on registers of the leaf, on the process' tables and on
 * words that it read of the stack, and on nothing else: where all of them are what they were,
 * so is the stack. One in VERIFY_ONE_IN is walked all the same, and must come to that stack.
 *
 * Each CPU has its own: handlers of a switch do not nest, so nobody else is at it.
 */
#ifndef DWELL_BPF_KEPT_WALKS_H
#define DWELL_BPF_KEPT_WALKS_H

#include "unwind.h"

enum {
  KEPT_WALKS = 128, /* per CPU, 2 KiB each; a walk takes the place of another */
  VERIFY_ONE_IN = 1024,
};

struct kept_walk {
  struct dwell_process_key process;
  struct user_regs regs;
  __u64 id; /* of the stack; 0: nothing kept here */
  __u32 version, by_row, by_pointer;
  __u32 end;
  __u32 loads, leaf_used;
  __u32 hits;
  __u32 in_doubt; /* this time it is walked all the same */
  struct user_load load[KEPT_LOADS];
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, KEPT_WALKS);
  __type(key, __u32);
  __type(value, struct kept_walk);
} kept_walks SEC(".maps");

/* The place of such a walk, whoever has it. */
static always_inline struct kept_walk* find_kept(const struct thread_state* state,
                                                 const struct scratch* scratch) {
  const struct user_regs* regs = &scratch->regs;
  __u32 place = mix(mix(state->process.pid, regs->ip), regs->sp) % KEPT_WALKS;
  return bpf_map_lookup_elem(&kept_walks, &place);
}

static always_inline bool is_same_leaf(const struct kept_walk* kept,
                                       const struct thread_state* state,
                                       const struct user_regs* regs, __u32 version) {
  /* Of the number of the system call only whether there is one matters. */
  return kept->regs.ip == regs->ip && kept->regs.sp == regs->sp &&
         (kept->regs.bp == regs->bp || !(kept->leaf_used & LEAF_BP)) &&
         (kept->regs.bx == regs->bx || !(kept->leaf_used & LEAF_BX)) && kept->regs.cs == regs->cs &&
         (kept->regs.orig_ax ^ regs->orig_ax) >> 63 == 0 && kept->version == version &&
         kept->process.pid == state->process.pid &&
         kept->process.exec_id == state->process.exec_id &&
         kept->process.start_boottime_ns == state->process.start_boottime_ns;
}

verified_once int has_same_words(const struct kept_walk* kept, struct scratch* scratch) {
  if (!kept || !scratch) return 0;
  for (__u32 i = 0; i < KEPT_LOADS; ++i) {
    if (i >= kept->loads) break;
    if (read_word(0, scratch, kept->load[i].address) != 0) return 0;
    if (scratch->walk.word != kept->load[i].word) return 0;
  }
  return 1;
}

/* The id of the stack that a walk would come to, or 0: walk. */
static always_inline __u64 repeat_walk(struct kept_walk* kept, const struct thread_state* state,
                                       struct scratch* scratch) {
  struct walk* walk = &scratch->walk;
  if (!kept || kept->id == 0 || !is_same_leaf(kept, state, &scratch->regs, walk->version)) return 0;
  if (!has_same_words(kept, scratch)) return 0;
  kept->in_doubt = ++kept->hits % VERIFY_ONE_IN == 0;
  if (kept->in_doubt) return 0;
  walk->by_row = kept->by_row;
  walk->by_pointer = kept->by_pointer;
  scratch->stack.end = kept->end;
  count_walk(walk, kept->end);
  count(DWELL_COUNT_WALK_REPEATED, 0);
  return kept->id;
}

/* The words on which the walk depends: registers were saved in others, and not asked for. */
verified_once int keep_words(struct kept_walk* kept, const struct scratch* scratch) {
  if (!kept || !scratch) return 0;
  __u32 loads = 0;
  for (__u32 i = 0; i < KEPT_LOADS; ++i) {
    if (i >= scratch->walk.loads) break;
    /* Without a branch: the verifier would follow both ways, each time. */
    kept->load[loads & (KEPT_LOADS - 1)] = scratch->loads[i];
    loads += !(scratch->loads[i].address >> 63);
  }
  kept->loads = loads;
  return 0;
}

/* `id`: of the stack that the walk came to. Kept are those that user space has. */
static always_inline void keep_walk(struct kept_walk* kept, const struct thread_state* state,
                                    const struct scratch* scratch, __u64 id) {
  const struct walk* walk = &scratch->walk;
  if (!kept) return;
  if (kept->in_doubt) {
    count(id == kept->id ? DWELL_COUNT_WALK_VERIFIED : DWELL_LOSS_WALK_MISMATCH, 0);
    kept->in_doubt = 0;
  }
  if (state->known_stack != id || walk->loads > KEPT_LOADS) return;
  if (scratch->stack.end == DWELL_WALK_FAULT) return; /* the page may be there the next time */
  kept->process = state->process;
  kept->regs = scratch->regs;
  kept->id = id;
  kept->version = walk->version;
  kept->by_row = walk->by_row;
  kept->by_pointer = walk->by_pointer;
  kept->end = scratch->stack.end;
  kept->leaf_used = walk->leaf_used;
  kept->hits = 0;
  keep_words(kept, scratch);
}

#endif
