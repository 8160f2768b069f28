/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* What the probe shares with user space: configuration, window, maps and counters. Sizes are set at
 * load time. */
#ifndef DWELL_BPF_MAPS_H
#define DWELL_BPF_MAPS_H

#include "core_types.h"

#define always_inline inline __attribute__((always_inline))

/*
 * A function that the verifier looks at once, whatever the paths that lead to it: with their loops
 * inlined at the end of each path the programs would be too large. Kernels before 5.13, which the
 * raw build serves, give it no pointers: there one with loops finds its scratch by itself, and a
 * small one (`verified_alone`) is looked at with each path after all.
 */
#define verified_once __attribute__((noinline))
#ifdef DWELL_RAW_TP
#define verified_alone static __attribute__((noinline))
#else
#define verified_alone verified_once
#endif

const volatile struct dwell_config config = {};
const volatile struct dwell_row empty_row = {};

/* .bss, mapped by user space. */
struct dwell_window window = {};
__u8 target_hints[DWELL_TARGET_HINTS] = {};

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096);
  __type(key, struct dwell_target_key);
  __type(value, __u64); /* start_boottime of the task */
} targets SEC(".maps");

/* Two epochs of rows: one is written while user space drains the other. */
struct row_map {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1);
  __uint(key_size, sizeof(struct dwell_row_key));
  __uint(value_size, sizeof(struct dwell_row));
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, 1);
  __type(key, __u32);
  __array(values, struct row_map);
} epoch SEC(".maps");

/* What did not fit into the rows: one row per class, summed over CPUs. */
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, DWELL_CLASS_COUNT);
  __type(key, __u32);
  __type(value, struct dwell_row);
} overflow SEC(".maps");

/* Hashes of the stacks that were sent through `stacks`; the value tells whether a sample was sent
 * at the end of the window as well. */
enum { STACK_SENT = 1, STACK_SAMPLED = 2 };
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1);
  __type(key, __u64);
  __type(value, __u8);
} known_stacks SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1);
} stacks SEC(".maps"); /* struct dwell_stack_record */

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1);
} threads SEC(".maps"); /* struct dwell_thread_record */

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct dwell_lost_threads);
} lost_threads SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096);
  __type(key, struct dwell_signature_key);
  __type(value, struct dwell_signature);
} signatures SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1);
} samples SEC(".maps"); /* struct dwell_kernel_stack_sample */

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, DWELL_COUNTER_COUNT);
  __type(key, __u32);
  __type(value, struct dwell_counter_cell);
} counters SEC(".maps");

/* struct dwell_interval_record, one ring per CPU. Not created without --timeline. */
struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __type(key, __u32);
  __type(value, __u32);
} timeline SEC(".maps");

static always_inline void count_many(__u32 counter, __u64 times, __u64 ns) {
  struct dwell_counter_cell* cell = bpf_map_lookup_elem(&counters, &counter);
  if (!cell) return;
  cell->count += times;
  cell->ns += ns;
}

static always_inline void count(__u32 counter, __u64 ns) { count_many(counter, 1, ns); }

/*
 * Room for what does not fit on the 512-byte stack. Handlers of sched_switch run with interrupts
 * off and never nest, so one per CPU will do. The others can be interrupted by a switch and have
 * their own: the iterators, which run one at a time, and the handlers of exec and rename, which
 * sleep and migrate no more than a switch would let them.
 */
enum { CHUNK_WORDS = 64, KEPT_LOADS = 128 };

/* User-mode registers. */
struct user_regs {
  __u64 ip, sp, bp, bx, orig_ax, cs;
};

/* A walk of a user stack under way: the registers of the frame that is being looked at. */
struct walk {
  __u64 ip, sp, bp, bx;
  __u64 hash;
  __u64 chunk_start; /* where scratch->chunk was read, 0: nowhere */
  __u64 chunk_bytes;
  __u64 word; /* what was read last */
  __u32 first_mapping, mappings;
  __u32 version;            /* of the process' tables, 0: it has none */
  __u32 by_row, by_pointer; /* steps */
  __u32 is_return;          /* 1: ip is a return address, the call lies before it */
  __u32 is_leaf;            /* all registers are known */
  __u32 loads;              /* words read so far, those beyond KEPT_LOADS as well */
  __u32 bp_load, bx_load;   /* which of them gave the register, or FROM_LEAF */
  __u32 leaf_used;          /* registers of the leaf on which the walk depends: LEAF_BP | LEAF_BX */
  __u32 stack_changes;      /* callers on another stack, at lower addresses */
  __u32 python_layout;      /* of the process, 0: it is none of Python's */
  __u64 python_runtime;
};

/* `address` is above NOT_USED as long as the walk does not depend on the word. */
struct user_load {
  __u64 address, word;
};
#define NOT_USED (1ull << 63)
enum { FROM_LEAF = ~0u, LEAF_BP = 1, LEAF_BX = 2 };

/* The Python frames of a thread under way. */
struct python_walk {
  __u64 interpreter, state; /* that are looked at next, 0: none */
  __u64 frame;
  __u64 hash;
  __u64 words[16]; /* of a frame, as read */
  __u32 native_id; /* of the thread, as it knows itself */
  __u32 begins;    /* the next frame is the leaf of an eval call */
  __u32 is_cut;
};

/* An interval, cut to the window and split into its phases. */
struct interval {
  __u64 from, to;
  __u64 blocked_ns, run_queue_ns;
  __u8 censored;
};

struct scratch {
  struct dwell_stack_record stack;
  struct user_regs regs; /* of the thread that leaves */
  struct walk walk;
  __u64 chunk[CHUNK_WORDS + 2];
  struct user_load loads[KEPT_LOADS]; /* what the walk read */
  __u64 words[DWELL_SIGNATURE_WORDS];
  struct dwell_thread_record record;
  struct interval interval;
  struct dwell_interval_record interval_record;
  struct python_walk python;
  struct dwell_stack_record python_stack;
};
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct scratch);
} switch_scratch SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct scratch);
} life_scratch SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct scratch);
} iterator_scratch SEC(".maps");

static always_inline struct scratch* scratch_at(void* map, __u32 index) {
  return bpf_map_lookup_elem(map, &index);
}
#define get_scratch(map) scratch_at(map, 0)

/* How a function that is verified once is told its scratch: see verified_once. */
#ifdef DWELL_RAW_TP
typedef __u32 scratch_reference;
#define refer_to(scratch) 0
#define referred(reference) scratch_at(&switch_scratch, reference)
#else
typedef struct scratch* scratch_reference;
#define refer_to(scratch) (scratch)
#define referred(reference) (reference)
#endif

#endif
