/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The unwind tables in the kernel, and the two look-ups: address -> mapping, address -> rule. User
 * space fills them (src/unwind) and replaces nothing that a walker may be reading.
 */
#ifndef DWELL_BPF_UNWIND_TABLES_H
#define DWELL_BPF_UNWIND_TABLES_H

#include "abi/unwind.h"
#include "task.h"

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 1);
  __type(key, __u32); /* pid */
  __type(value, struct dwell_unwind_process);
} unwind_processes SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct dwell_unwind_mapping);
} unwind_mappings SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct dwell_unwind_page);
} unwind_pages SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct dwell_unwind_rule);
} unwind_rules SEC(".maps");

struct unwind_slab {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, DWELL_UNWIND_SLAB_BLOCKS);
  __uint(key_size, sizeof(__u32));
  __uint(value_size, DWELL_UNWIND_BLOCK_ROWS * sizeof(dwell_unwind_row));
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, 1);
  __type(key, __u32);
  __array(values, struct unwind_slab);
} unwind_slabs SEC(".maps");

/*
 * Makes the verifier forget what it knows about a number. It would follow each turn of a binary
 * search by itself, with the exact limits of each: a million states. `unknown` is a number that it
 * knows nothing of either.
 */
#ifdef __bpf__
#define forget(number, unknown) \
  asm volatile("%0 ^= %1\n%0 ^= %1" : "+r"(number) : "r"((__u64)(unknown)))
#else /* compiled natively: no verifier */
#define forget(number, unknown) ((void)(unknown))
#endif

enum {
  NO_INDEX = ~0u,
  MAPPING_STEPS = 17, /* a process may have 65,536 */
  ROW_STEPS = 17,     /* a page may have 65,536 */
};

/* The mapping among [first, first + count) that holds the address, or NO_INDEX. */
verified_once __u32 find_mapping(__u64 first, __u64 count, __u64 address) {
  __u64 low = first, high = first + count;
  for (int i = 0; i < MAPPING_STEPS; ++i) {
    if (low >= high) break;
    __u32 middle = (low + high) / 2;
    struct dwell_unwind_mapping* mapping = bpf_map_lookup_elem(&unwind_mappings, &middle);
    if (!mapping) return NO_INDEX;
    if (mapping->start <= address)
      low = (__u64)middle + 1;
    else
      high = middle;
    forget(low, address);
    forget(high, address);
  }
  __u32 last = (__u32)low - 1;
  if (low == first) return NO_INDEX;
  struct dwell_unwind_mapping* mapping = bpf_map_lookup_elem(&unwind_mappings, &last);
  return mapping && address < mapping->end ? last : NO_INDEX;
}

/* The number of the rule for an address in that mapping; 0: there is no unwind data. */
verified_once __u32 find_rule(__u32 index, __u64 address) {
  struct dwell_unwind_mapping* mapping = bpf_map_lookup_elem(&unwind_mappings, &index);
  if (!mapping) return 0;
  __u64 offset = address - mapping->base, page_number = offset >> DWELL_UNWIND_PAGE_SHIFT;
  if (page_number >= mapping->pages) return 0;
  __u32 page_index = mapping->first_page + page_number;
  struct dwell_unwind_page* page = bpf_map_lookup_elem(&unwind_pages, &page_index);
  if (!page || page->rows == 0) return 0;
  __u32 slab_index = page->first_row / DWELL_UNWIND_SLAB_ROWS;
  void* slab = bpf_map_lookup_elem(&unwind_slabs, &slab_index);
  if (!slab) return 0;
  __u64 low = page->first_row % DWELL_UNWIND_SLAB_ROWS, high = low + page->rows;
  __u64 found = 0, wanted = DWELL_UNWIND_ROW(offset, 0xffff);
  for (int i = 0; i < ROW_STEPS; ++i) {
    if (low >= high) break;
    __u64 middle = (low + high) / 2;
    __u32 block = middle / DWELL_UNWIND_BLOCK_ROWS;
    dwell_unwind_row* rows = bpf_map_lookup_elem(slab, &block);
    if (!rows) return 0;
    __u64 row = rows[middle % DWELL_UNWIND_BLOCK_ROWS];
    if (row <= wanted) {
      found = row;
      low = middle + 1;
    } else {
      high = middle;
    }
    forget(found, address);
    forget(low, address);
    forget(high, address);
  }
  return found & 0xffff;
}

/* The process goes on as another program: its tables are those of the old one. */
static always_inline void forget_tables(struct task_struct* task) {
  __u32 pid = READ(task, tgid);
  bpf_map_delete_elem(&unwind_processes, &pid);
}

/* A new process has its parent's address space: the parent's tables are good until it execs. */
static always_inline void inherit_tables(struct task_struct* child) {
  __u32 pid = READ(child, tgid), parent_pid = (__u32)(bpf_get_current_pid_tgid() >> 32);
  if (READ(child, pid) != (int)pid) return;
  struct dwell_unwind_process* parent = bpf_map_lookup_elem(&unwind_processes, &parent_pid);
  if (!parent) return;
  struct dwell_unwind_process copy = *parent;
  copy.start_boottime_ns = READ(child, start_boottime);
  bpf_map_update_elem(&unwind_processes, &pid, &copy, BPF_ANY);
}

#endif
