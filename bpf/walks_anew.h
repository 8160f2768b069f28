/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* In place of kept_walks.h, where kernels are too old for it: each stack is walked each time. */
#ifndef DWELL_BPF_WALKS_ANEW_H
#define DWELL_BPF_WALKS_ANEW_H

#include "unwind.h"

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
