/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * What the off-CPU probe (bpf/off_cpu.bpf.c) and the collector (src/collect) say to each other.
 * C only; compiled by both sides; every size and offset is asserted at the end.
 *
 * Words: `pid` is the process, `tid` the thread, `_ns` CLOCK_MONOTONIC nanoseconds unless it says
 * otherwise. "Writer" names the side that writes a field; the other side only reads it.
 */
#ifndef DWELL_ABI_OFF_CPU_H
#define DWELL_ABI_OFF_CPU_H

#ifndef __bpf__
#include <stddef.h>
#include <stdint.h>
typedef uint8_t __dwell_u8;
typedef uint16_t __dwell_u16;
typedef uint32_t __dwell_u32;
typedef uint64_t __dwell_u64;
#else
typedef unsigned char __dwell_u8;
typedef unsigned short __dwell_u16;
typedef unsigned int __dwell_u32;
typedef unsigned long long __dwell_u64;
#endif

enum {
  DWELL_COMM_BYTES = 16,
  DWELL_MAX_FRAMES = 127, /* per stack and per side (user, kernel) */
  DWELL_HISTOGRAM_BUCKETS =
      32, /* bucket b counts intervals of [2^(b+5), 2^(b+6)) ns; the ends collect the rest */
  DWELL_HISTOGRAM_SHIFT = 5,
  DWELL_TARGET_HINTS = 65536, /* one byte per id modulo this: 0 means "certainly no target" */
};

/* Why a thread was off the CPU: decided at switch-out. */
enum dwell_class {
  DWELL_CLASS_NONE = 0,
  /* blocked: not on a run queue */
  DWELL_CLASS_INTERRUPTIBLE = 1,
  DWELL_CLASS_IO = 2, /* sleeping with in_iowait set */
  DWELL_CLASS_UNINTERRUPTIBLE = 3,
  DWELL_CLASS_KILLABLE = 4,
  DWELL_CLASS_IDLE_KTHREAD = 5, /* uninterruptible without load: kernel threads without work */
  DWELL_CLASS_STOPPED = 6,
  DWELL_CLASS_TRACED = 7,
  DWELL_CLASS_PARKED = 8,
  DWELL_CLASS_FROZEN = 9,
  DWELL_CLASS_RTLOCK = 10,
  DWELL_CLASS_OTHER = 11, /* the raw state is kept in the key */
  /* runnable: on a run queue all the time */
  DWELL_CLASS_PREEMPTED =
      12, /* lost the CPU on the way to user mode: time slice or higher priority */
  DWELL_CLASS_PREEMPTED_KERNEL = 13, /* lost it in the kernel */
  DWELL_CLASS_YIELDED = 14,          /* sched_yield */
  DWELL_CLASS_SIGNAL = 15,           /* meant to sleep, a signal was pending */
  DWELL_CLASS_NEW = 16,              /* created, has not run yet */
  DWELL_CLASS_RUNNABLE = 17,         /* was on the run queue when the window began */
  DWELL_CLASS_COUNT = 18,
};

/* What the thread was doing when it left the CPU: a system-call number, or one of these. */
enum dwell_cause {
  DWELL_CAUSE_COMPAT = 0x4000,    /* or-ed to the number of a 32-bit system call */
  DWELL_CAUSE_PREEMPTED = 0xfff0, /* user-mode code that lost the CPU */
  DWELL_CAUSE_FAULT = 0xfff1,     /* page fault or another exception */
  DWELL_CAUSE_KTHREAD = 0xfff2,   /* kernel thread: no system call */
  DWELL_CAUSE_NEW_THREAD = 0xfff3,
  DWELL_CAUSE_UNKNOWN = 0xffff,
};

/* Flags of a row: which end of the interval lies outside the window. */
enum {
  DWELL_CENSORED_LEFT = 1,
  DWELL_CENSORED_RIGHT = 2,
};

/* Stack ids that are not hashes: placeholders that carry their time. Real hashes are never below
 * DWELL_STACK_FIRST. */
enum {
  DWELL_STACK_NONE = 0, /* there is no such stack: a kernel thread's user side, a disabled side */
  DWELL_STACK_LOST_FULL = 1,  /* the store was full */
  DWELL_STACK_LOST_FAULT = 2, /* not one frame could be read */
  DWELL_STACK_BEFORE_START =
      3, /* blocked since before the window, and this kernel cannot read its stack */
  DWELL_STACK_NOT_TAKEN = 4, /* class whose stacks were not asked for */
  DWELL_STACK_MISSED = 5,    /* kernel stack of a thread whose return to the CPU was not told */
  DWELL_STACK_FIRST = 16,
};

/* Aggregation key; one row per distinct key and epoch. Writer: probe. */
struct dwell_row_key {
  __dwell_u64 user_stack; /* hash, or a placeholder above */
  __dwell_u64 kernel_stack;
  __dwell_u64 thread; /* dwell_thread_record.thread */
  __dwell_u32 state;  /* raw state word at switch-out, FREEZABLE masked off */
  __dwell_u16 cause;
  __dwell_u8 wait_class; /* enum dwell_class */
  __dwell_u8 censored;
};

/* Writer: probe. Every interval counts once, whatever its phases; total = blocked + run_queue. */
struct dwell_row {
  __dwell_u64 count;
  __dwell_u64 blocked_ns;
  __dwell_u64 run_queue_ns;
  __dwell_u64 max_ns;                             /* longest whole interval */
  __dwell_u32 histogram[DWELL_HISTOGRAM_BUCKETS]; /* of whole intervals */
};

/* One program image: the address space that user addresses belong to. */
struct dwell_process_key {
  __dwell_u32 pid;
  __dwell_u32 exec_id;           /* task_struct.self_exec_id */
  __dwell_u64 start_boottime_ns; /* of the thread-group leader */
};

/*
 * One off-CPU interval, cut to the window: `record --timeline` alone. Through the perf event array
 * `timeline` when it ends, beside the row that it is added to. Writer: probe.
 */
struct dwell_interval_record {
  __dwell_u64 thread; /* as in dwell_row_key, like the fields that have its names */
  __dwell_u64 user_stack;
  __dwell_u64 kernel_stack;
  __dwell_u64 start_ns;
  __dwell_u64 blocked_ns;   /* from the start until it was woken */
  __dwell_u64 run_queue_ns; /* from then on */
  __dwell_u32 state;
  __dwell_u32 cpu; /* on which it ended; that of the closing iterator for what the window cut off */
  __dwell_u16 cause;
  __dwell_u8 wait_class;
  __dwell_u8 censored;
  __dwell_u32 zero;
};

enum {
  DWELL_STACK_USER = 1,
  DWELL_STACK_KERNEL = 2,
  DWELL_STACK_COMPLETE = 4,  /* user: the walk reached a root frame */
  DWELL_STACK_TRUNCATED = 8, /* deeper than DWELL_MAX_FRAMES: root frames are missing */
  /* The frames of the CPython interpreter (abi/python.h): `ips` are words of that kind, `end` is
   * the number of the layout that they were read by. */
  DWELL_STACK_PYTHON = 16,
  /* A user stack together with the Python frames in it: ips[0] is the id of the one, ips[1] of the
   * other. Rows name it in place of the user stack. */
  DWELL_STACK_PAIR = 32,
};

/* Why the walk of a user stack went no further. The first three are roots: the stack is whole. */
enum dwell_walk_end {
  DWELL_WALK_ROOT = 0,          /* the unwind data says that there is no caller */
  DWELL_WALK_ROOT_ZERO = 1,     /* the return address is 0 */
  DWELL_WALK_ROOT_POINTER = 2,  /* the frame pointer is 0 where there is no unwind data */
  DWELL_WALK_TRUNCATED = 3,     /* DWELL_MAX_FRAMES */
  DWELL_WALK_NO_TABLES = 4,     /* frame pointers led nowhere; the process has no tables (yet) */
  DWELL_WALK_NO_MAPPING = 5,    /* an address in no executable mapping that is known */
  DWELL_WALK_BAD_POINTER = 6,   /* no unwind data there, and no plausible frame pointer */
  DWELL_WALK_UNSUPPORTED = 7,   /* unwind data that no rule can say */
  DWELL_WALK_RULES_FULL = 8,    /* ... or that did not fit into the table of rules */
  DWELL_WALK_REGISTER_LOST = 9, /* the rule needs a register that is not known in this frame */
  DWELL_WALK_FAULT = 10,        /* a page of the stack is not in memory */
  DWELL_WALK_BAD_STACK = 11,    /* the caller's frame would not lie above this one */
  DWELL_WALK_BAD_IP = 12,       /* a return address that no user code has */
  DWELL_WALK_COMPAT = 13,       /* 32-bit code */
  DWELL_WALK_END_COUNT = 14,
};
enum { DWELL_STEP_WORDS = (DWELL_MAX_FRAMES + 1) / 64 };

/*
 * A stack, sent once through the ring `stacks` when it is first seen; `known_stacks` remembers that
 * it was. The record is cut after `count` ips, leaf first. Every ip but the leaf's is one byte
 * behind something: a return address is behind its call, and where a signal interrupted a function
 * the address has one added. Writer: probe.
 */
struct dwell_stack_record {
  __dwell_u64 hash;
  struct dwell_process_key process; /* zero for kernel stacks */
  __dwell_u64 first_seen_ns;
  __dwell_u16 count; /* frames that follow */
  __dwell_u16 flags;
  __dwell_u16 end; /* user: enum dwell_walk_end */
  __dwell_u16 zero;
  /* User: bit i tells that the step from frame i to its caller followed the frame pointer, and not
   * unwind data. */
  __dwell_u64 pointer_steps[DWELL_STEP_WORDS];
  __dwell_u64 ips[DWELL_MAX_FRAMES + 1];
};
enum { DWELL_STACK_RECORD_HEADER_BYTES = 40 + 8 * DWELL_STEP_WORDS };

/*
 * Kernel stacks by signature (docs/kernel-stacks.md). A sleeping thread's stack is known by the
 * words at the slots of its return addresses; the probe compares exactly those. Writer: user space,
 * which learns them from dwell_kernel_stack_sample; entries are inserted once and never changed,
 * but for `refuted`, which the probe sets.
 */
enum {
  DWELL_SIGNATURE_PAIRS = 32,
  DWELL_SIGNATURE_WAYS = 8,
  DWELL_SIGNATURE_WORDS = 320, /* how far above the saved stack pointer a slot may lie */
  DWELL_SAVED_FRAME_WORDS = 6, /* x86-64: r15 r14 r13 r12 rbx rbp below the first return address */
};
struct dwell_signature_key {
  __dwell_u32 tid; /* of kernel threads, else 0 */
  __dwell_u16 cause;
  __dwell_u16 way; /* 0, 1, ... up to the first that is missing */
};
struct dwell_signature {
  __dwell_u64 stack;       /* id for the rows */
  __dwell_u64 walked_hash; /* what a walk of the same stack hashes to */
  __dwell_u32 pairs;
  __dwell_u32 words; /* read this many from the saved stack pointer */
  __dwell_u32 refuted;
  __dwell_u32 zero;
  __dwell_u16 slot[DWELL_SIGNATURE_PAIRS]; /* in words from the saved stack pointer, ascending */
  __dwell_u64 word[DWELL_SIGNATURE_PAIRS];
};
/* A walked kernel stack together with the sleeping thread's stack words. Through the ring
 * `samples`. Writer: probe. */
struct dwell_kernel_stack_sample {
  struct dwell_signature_key key; /* way: the first that is missing */
  __dwell_u64 walked_hash;
  __dwell_u32 count; /* of ips, leaf first, without scheduler functions */
  __dwell_u32 words; /* of stack */
  __dwell_u64 ips[DWELL_SIGNATURE_PAIRS];
  __dwell_u64 stack[DWELL_SIGNATURE_WORDS];
};

/* Where a thread's wall time inside the window went. Writer: probe. The sum of the first six is its
 * time alive. */
struct dwell_books {
  __dwell_u64 running_ns;
  __dwell_u64 run_queue_ns; /* whole intervals, both phases of which lie in the window */
  __dwell_u64 blocked_ns;
  __dwell_u64 censored_run_queue_ns; /* in-window part of intervals cut by an edge of the window */
  __dwell_u64 censored_blocked_ns;
  __dwell_u64 lost_ns;           /* the kernel did not tell that the thread left the CPU */
  __dwell_u64 intervals;         /* off-CPU intervals, censored ones included */
  __dwell_u64 blocked_intervals; /* of them of a blocked class: voluntary switches */
  __dwell_u64 filtered_ns;       /* of the above: time not in any row because a filter said so */
  __dwell_u64 filtered_intervals;
  __dwell_u64 overflow_ns; /* of the above: time charged to the overflow row */
  __dwell_u64 overflow_intervals;
};

enum dwell_thread_end {
  DWELL_END_ALIVE = 0, /* was alive at the end of the window */
  DWELL_END_EXITED = 1,
  DWELL_END_EXECUTED = 2, /* went on as another program, under another `thread` */
  DWELL_END_RENAMED = 3,  /* went on under another name and `thread` */
};

enum {
  DWELL_THREAD_KERNEL = 1, /* kernel thread */
  DWELL_THREAD_BORN = 2,   /* began inside the window */
  DWELL_THREAD_FIRST = 4,  /* thread-group leader */
  DWELL_THREAD_UNSEEN = 8, /* the probe had no state for it: its whole time alive is lost */
  DWELL_THREAD_GAP = 16,   /* ... for the first part of it: what the books miss is lost */
};

/* One life of one thread under one name: written when it ends, or by the iterator that closes the
 * window. */
struct dwell_thread_record {
  __dwell_u64 thread; /* hash of (tid, start, life): rows refer to it */
  struct dwell_process_key process;
  __dwell_u64 start_boottime_ns; /* of the thread */
  __dwell_u64 birth_ns;          /* when this life began, not before the window */
  __dwell_u64 end_ns;            /* when it ended, not after the window */
  struct dwell_books books;
  __dwell_u32 tid;
  __dwell_u32 parent_pid;
  __dwell_u8 ended; /* enum dwell_thread_end */
  __dwell_u8 flags;
  __dwell_u16 zero;
  __dwell_u32 zero2;
  char comm[DWELL_COMM_BYTES];         /* bytes of another process: not UTF-8, not harmless */
  char process_comm[DWELL_COMM_BYTES]; /* of the thread-group leader */
};

/* Loss and health counters, one array per CPU. Writer: probe. The names are in src/collect/loss.cc.
 */
enum dwell_counter {
  DWELL_COUNT_SWITCHES = 0,    /* switches seen, targets only */
  DWELL_COUNT_ROWS_INSERTED,   /* new rows, all epochs */
  DWELL_LOSS_STATE_FULL,       /* no state for a thread: its time until the next event is lost */
  DWELL_LOSS_ROWS_FULL,        /* ns: charged to the overflow row of the class */
  DWELL_LOSS_USER_STACKS_FULL, /* known_stacks was full: placeholder rows carry the time */
  DWELL_LOSS_KERNEL_STACKS_FULL,
  DWELL_COUNT_STACK_RING_FULL, /* not sent now, sent again at the next sight */
  DWELL_LOSS_KERNEL_STACK_FAULT,
  DWELL_COUNT_STACK_TRUNCATED,
  DWELL_COUNT_STACK_INCOMPLETE,  /* user walks that did not reach a root frame */
  DWELL_COUNT_MISSED_WAKEUP,     /* ns: blocked intervals that ended without a waking */
  DWELL_COUNT_EARLY_WAKEUP,      /* waking before the switch-out */
  DWELL_COUNT_CLOCK_ANOMALY,     /* ns: by which an event came before the one before it */
  DWELL_COUNT_MISSED_SWITCH_IN,  /* ns: of the intervals whose end was worked out from the CPU time
                                  */
  DWELL_LOSS_MISSED_SWITCH_OUT,  /* ns: off the CPU, but why and when is not known */
  DWELL_COUNT_FILTERED,          /* ns */
  DWELL_LOSS_THREAD_RECORDS,     /* ns alive: folded into dwell_lost_threads */
  DWELL_LOSS_TARGETS_FULL,       /* a child could not be followed */
  DWELL_COUNT_KSTACK_HIT,        /* kernel stacks found by signature */
  DWELL_COUNT_KSTACK_WALK,       /* kernel stacks walked */
  DWELL_COUNT_KSTACK_VERIFIED,   /* hits walked as well and found equal */
  DWELL_LOSS_KSTACK_MISMATCH,    /* hits walked as well and found different: must be 0 */
  DWELL_COUNT_TIMELINE,          /* ns: intervals that are long enough for the timeline */
  DWELL_LOSS_TIMELINE_RING,      /* ns: of them, those that the kernel did not take */
  DWELL_LOSS_TIMELINE_LIMIT,     /* ns: received, but more than user space keeps, which counts it */
  DWELL_COUNT_FRAMES_BY_ROW,     /* steps of user walks: by unwind data */
  DWELL_COUNT_FRAMES_BY_POINTER, /* ... by frame pointer */
  DWELL_COUNT_WALK_REPEATED,     /* user walks known to come to the stack of the last time */
  DWELL_COUNT_WALK_VERIFIED,     /* of them, walked as well and found equal */
  DWELL_LOSS_WALK_MISMATCH,      /* ... and found different: must be 0 */
  DWELL_COUNT_PYTHON,            /* waits whose Python frames were read */
  DWELL_COUNT_PYTHON_NO_THREAD,  /* waits in Python processes of threads without a thread state */
  DWELL_COUNT_PYTHON_CUT,        /* of DWELL_COUNT_PYTHON: frames at the root are missing */
  DWELL_COUNT_PYTHON_UNMATCHED,  /* stacks whose eval calls are not those of the Python frames */
  DWELL_COUNT_PYTHON_NAMES,      /* Python frames whose code object could not be read */
  DWELL_COUNT_WALK_END,          /* user walks by dwell_walk_end: one counter each from here */
  DWELL_COUNTER_COUNT = DWELL_COUNT_WALK_END + DWELL_WALK_END_COUNT,
};
struct dwell_counter_cell {
  __dwell_u64 count;
  __dwell_u64 ns;
};

/* Threads whose record did not fit into the ring. One per CPU. Writer: probe. */
struct dwell_lost_threads {
  __dwell_u64 threads;
  __dwell_u64 alive_ns;
  struct dwell_books books;
};

/* The window. Writer: user space, `start_ns` first, each once, both at least a millisecond ahead of
 * the clock. */
struct dwell_window {
  __dwell_u64 start_ns; /* 0: not yet known, handlers return at once */
  __dwell_u64 end_ns;   /* 0: not yet known */
};

/* Fixed before loading. */
struct dwell_config {
  __dwell_u32 own_pid;     /* excluded */
  __dwell_u8 all;          /* whole machine; else only ids in the target map */
  __dwell_u8 follow;       /* children of target processes are targets */
  __dwell_u8 user_threads; /* record threads with / without an address space of their own */
  __dwell_u8 kernel_threads;
  __dwell_u8 user_stacks;
  __dwell_u8 kernel_stacks;
  __dwell_u8 runnable_kernel_stacks; /* kernel stacks of preempted threads as well */
  __dwell_u8 switch_tells_state;     /* sched_switch has its fourth argument, since 5.18 */
  __dwell_u32 class_mask;            /* bit per dwell_class: rows wanted */
  __dwell_u32
      state_mask; /* 0: any; else rows whose raw state has one of these bits (bit 31: running) */
  __dwell_u64 min_ns; /* whole intervals outside [min_ns, max_ns] go to filtered_ns */
  __dwell_u64 max_ns;
  __dwell_u64 hash_seed;        /* random: stack hashes of two recordings differ */
  __dwell_u64 sched_text_start; /* code of the scheduler, 0 if unknown: then no signatures */
  __dwell_u64 sched_text_end;
  __dwell_u32 verify_every;    /* kernel stack hits between two verified ones */
  __dwell_u32 renames_max;     /* lives a thread may begin by renaming itself */
  __dwell_u64 timeline_min_ns; /* intervals of at least this go to the timeline as well */
  __dwell_u32 timeline;        /* 0: there is none; its code and its map are not loaded */
  __dwell_u32 zero;
};

/* Key of the target map: a pid or tid; the value is the start time of its task, against reuse of
 * the number. */
struct dwell_target_key {
  __dwell_u32 id;
  __dwell_u32 is_tid;
};

#ifdef __cplusplus
#define DWELL_ASSERT(x) static_assert(x, #x)
#else
#define DWELL_ASSERT(x) _Static_assert(x, #x)
#endif
DWELL_ASSERT(sizeof(struct dwell_row_key) == 32);
DWELL_ASSERT(sizeof(struct dwell_row) == 32 + 4 * DWELL_HISTOGRAM_BUCKETS);
DWELL_ASSERT(sizeof(struct dwell_interval_record) == 64);
DWELL_ASSERT(sizeof(struct dwell_process_key) == 16);
DWELL_ASSERT(__builtin_offsetof(struct dwell_stack_record, ips) == DWELL_STACK_RECORD_HEADER_BYTES);
DWELL_ASSERT(sizeof(struct dwell_signature_key) == 8);
DWELL_ASSERT(sizeof(struct dwell_signature) == 32 + 10 * DWELL_SIGNATURE_PAIRS);
DWELL_ASSERT(__builtin_offsetof(struct dwell_kernel_stack_sample, ips) == 24);
DWELL_ASSERT(sizeof(struct dwell_books) == 96);
DWELL_ASSERT(sizeof(struct dwell_thread_record) == 8 + 16 + 24 + 96 + 16 + 32);
DWELL_ASSERT(sizeof(struct dwell_counter_cell) == 16);
DWELL_ASSERT(sizeof(struct dwell_lost_threads) == 112);
DWELL_ASSERT(sizeof(struct dwell_config) == 88);
DWELL_ASSERT(sizeof(struct dwell_window) == 16);

#endif
