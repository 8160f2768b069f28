/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * How to get from a frame of x86-64 code to its caller: what src/unwind compiles out of .eh_frame
 * and bpf/unwind.h walks by (docs/stacks.md).
 *
 *   process -> mappings, sorted -> page of 64 KiB -> rows, sorted -> rule
 *
 * Writer of all of it: user space. Rows are written before their page, pages before the mapping
 * that refers to them, mappings before the process entry: the walker never sees half of a table.
 */
#ifndef DWELL_ABI_UNWIND_H
#define DWELL_ABI_UNWIND_H

#include "abi/off_cpu.h"

typedef signed short __dwell_s16;
typedef signed int __dwell_s32;

enum {
  DWELL_UNWIND_PAGE_SHIFT = 16, /* code that one page of rows covers */
  /* Rows lie in slabs, inner maps that are made as needed; a page never straddles two. A slab is
   * made of blocks because a map rounds each value up to 8 bytes, and a row has 4. */
  DWELL_UNWIND_BLOCK_ROWS = 1024,
  DWELL_UNWIND_SLAB_BLOCKS = 256,
  DWELL_UNWIND_SLAB_ROWS = DWELL_UNWIND_BLOCK_ROWS * DWELL_UNWIND_SLAB_BLOCKS,
  DWELL_UNWIND_RULES_MAX = 65536,
};

/*
 * A row: from this address on, this rule. Low 16 bits of the address in the upper half, number of
 * the rule in the lower: rows of a page ascend as numbers. The first row of a page is the one in
 * force at its first byte.
 */
typedef __dwell_u32 dwell_unwind_row;

/* What the canonical frame address (CFA: the stack pointer before the call) is. */
enum dwell_cfa_kind {
  DWELL_CFA_NONE = 0,     /* no unwind data here; rule 0 says so: follow the frame pointer */
  DWELL_CFA_REGISTER = 1, /* register + cfa_offset */
  DWELL_CFA_MEMORY = 2,   /* *(register + cfa_offset) + cfa_add */
  DWELL_CFA_PLT = 3,  /* rsp + 8, or + 16 where the address modulo 16 is at least cfa_add: a PLT */
  DWELL_CFA_ROOT = 4, /* there is no caller */
  DWELL_CFA_SIGNAL = 5,      /* all registers lie in the signal frame at rsp */
  DWELL_CFA_UNSUPPORTED = 6, /* an expression that no rule can say */
  DWELL_CFA_RULES_FULL = 7,  /* the rule did not fit into the table of rules */
};

/* Where the caller's rbp or rbx is. */
enum dwell_saved_kind {
  DWELL_SAVED_SAME = 0,     /* still in the register */
  DWELL_SAVED_AT_CFA = 1,   /* *(CFA + offset) */
  DWELL_SAVED_AT_FRAME = 2, /* *(rbp + offset), with the rbp of the frame itself */
  DWELL_SAVED_LOST = 3,     /* nowhere that a rule can say */
};

enum {
  DWELL_RETURN_AT_CFA = 0xff, /* the return address is *(CFA - 8); else a register holds it */
  DWELL_RULE_EXACT_IP = 1, /* flag: the caller was interrupted, its address is no return address */
};

/* Registers by their DWARF numbers. */
enum dwell_register {
  DWELL_REGISTER_RAX = 0,
  DWELL_REGISTER_RBX = 3,
  DWELL_REGISTER_RDI = 5,
  DWELL_REGISTER_RBP = 6,
  DWELL_REGISTER_RSP = 7,
  DWELL_REGISTER_COUNT = 16,
};

struct dwell_unwind_rule {
  __dwell_u8 cfa_kind;
  __dwell_u8 cfa_register;
  __dwell_u8 return_register; /* or DWELL_RETURN_AT_CFA */
  __dwell_u8 flags;
  __dwell_u8 frame_kind; /* rbp */
  __dwell_u8 rbx_kind;
  __dwell_s16 frame_offset;
  __dwell_s32 cfa_offset;
  __dwell_s16 cfa_add;
  __dwell_s16 rbx_offset;
};

struct dwell_unwind_page {
  __dwell_u32 first_row; /* over all slabs */
  __dwell_u32 rows;      /* 0: no unwind data in this page */
};

/* An executable mapping. `base` is where the first page of the object's table begins in this
 * address space: the page of `ip` is (ip - base) >> DWELL_UNWIND_PAGE_SHIFT. */
struct dwell_unwind_mapping {
  __dwell_u64 start;
  __dwell_u64 end;
  __dwell_u64 base;
  __dwell_u32 first_page; /* index into the pages */
  __dwell_u32 pages;      /* 0: the frame pointer is all there is */
};

/* Key: pid. */
struct dwell_unwind_process {
  __dwell_u64 start_boottime_ns; /* to the clock tick: against reuse of the pid */
  __dwell_u32 first_mapping;
  __dwell_u32 mappings;
  __dwell_u32 version;        /* another for each list that is put in force, never 0 */
  __dwell_u32 python_layout;  /* how to read its Python frames (abi/python.h); 0: it has none */
  __dwell_u64 python_runtime; /* the address of _PyRuntime */
};

#define DWELL_UNWIND_ROW(address, rule) (((__dwell_u32)(address)&0xffff) << 16 | (rule))

DWELL_ASSERT(sizeof(struct dwell_unwind_rule) == 16);
DWELL_ASSERT(__builtin_offsetof(struct dwell_unwind_rule, cfa_offset) == 8);
DWELL_ASSERT(sizeof(struct dwell_unwind_page) == 8);
DWELL_ASSERT(sizeof(struct dwell_unwind_mapping) == 32);
DWELL_ASSERT(sizeof(struct dwell_unwind_process) == 32);

#endif
