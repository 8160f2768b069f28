/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/* A thread as the probe sees it: its fields, whether it is a target, and the state that the probe
 * keeps for it. */
#ifndef DWELL_BPF_TASK_H
#define DWELL_BPF_TASK_H

#include "maps.h"

/*
 * The probe is built twice. Normally its arguments are typed (tp_btf), fields are read by plain
 * loads, and the state lives in task-local storage. With DWELL_RAW_TP they are plain addresses
 * (raw_tp), read through a helper, and the state lives in a hash map keyed by the task's address.
 */
#ifdef DWELL_RAW_TP
#define READ(pointer, field) BPF_CORE_READ(pointer, field)
#else
#define READ(pointer, field) ((pointer)->field)
#endif

static always_inline struct task_struct* current_task(void) {
#ifdef DWELL_RAW_TP
  return (void*)bpf_get_current_task();
#else
  return bpf_get_current_task_btf();
#endif
}

enum phase {
  PHASE_UNKNOWN = 0, /* no event so far: `seed` tells, or the first event does */
  PHASE_RUNNING = 1,
  PHASE_OFF = 2,     /* off the CPU: blocked or runnable, by wait_class */
  PHASE_CLOSING = 5, /* ... and are being made so */
  PHASE_CLOSED = 3,  /* the window is over and the books are final */
  PHASE_ENDED = 4,   /* the record was sent */
};

/* What the thread was at when the window began, if it had no event by then. Writer: the seeding
 * iterator. */
struct seed_state {
  __u64 user_stack;
  __u64 cpu_time_ns;
  __u64 departures;
  __u32 raw_state;
  __u16 cause;
  __u8 wait_class;
  __u8 phase; /* written last; 0: not seeded */
};

/*
 * Made for every target before the window, and for new threads when they are created: handlers of
 * sched_switch hold the run-queue lock, no place to allocate memory.
 *
 * Writers: the CPU that switches the thread in or out, which the run-queue lock orders; `waking_ns`
 * alone is written by the waker's CPU.
 */
struct thread_state {
  __u64 since_ns;     /* begin of the current phase; 0: before the probe saw the thread */
  __u64 waking_ns;    /* last sched_waking since the last switch-in, 0: none */
  __u64 user_stack;   /* of the current interval */
  __u64 kernel_stack; /* ... where it has to be taken at switch-out */
  __u64 known_stack;  /* the last user stack found in known_stacks: most waits repeat */
  __u64 cpu_time_ns; /* used by the thread when it last left the CPU, by the scheduler's own account
                      */
  __u64 departures;  /* the scheduler's count of them that the probe knows of */
  __u64 thread;      /* id of this life */
  __u64 birth_ns;
  __u64 start_boottime_ns;
  struct dwell_process_key process;
  struct dwell_books books;
  struct seed_state seed;
  __u32 tid; /* exec may change the task's */
  __u32 phase;
  __u32 raw_state;
  __u16 cause;
  __u16 signature_way; /* where the last kernel stack was found */
  __u8 wait_class;
  __u8 born;      /* this life began inside the window */
  __u8 gap;       /* the probe has no state for [window start, since_ns): state was full before */
  __u8 stack_cut; /* the walk of user_stack did not reach a root: for `rewalk` */
  __u32 tables_version; /* that the last walk went by */
  __u32 life;           /* how many lives (execs, renames) came before */
  char comm[DWELL_COMM_BYTES];
};

#ifdef DWELL_RAW_TP
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 65536);
  __type(key, __u64);
  __type(value, struct thread_state);
} thread_states SEC(".maps");
#else
struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct thread_state);
} thread_states SEC(".maps");
#endif

static always_inline struct thread_state* find_state(struct task_struct* task) {
#ifdef DWELL_RAW_TP
  __u64 key = (__u64)task;
  return bpf_map_lookup_elem(&thread_states, &key);
#else
  return bpf_task_storage_get(&thread_states, task, 0, 0);
#endif
}

/* Stores `initial` unless the task has state already; returns what is stored. */
static always_inline struct thread_state* create_state(struct task_struct* task,
                                                       struct thread_state* initial) {
#ifdef DWELL_RAW_TP
  __u64 key = (__u64)task;
  bpf_map_update_elem(&thread_states, &key, initial, BPF_NOEXIST);
  return bpf_map_lookup_elem(&thread_states, &key);
#else
  return bpf_task_storage_get(&thread_states, task, initial, BPF_LOCAL_STORAGE_GET_F_CREATE);
#endif
}

static always_inline void forget_state(struct task_struct* task) {
#ifdef DWELL_RAW_TP
  __u64 key = (__u64)task;
  bpf_map_delete_elem(&thread_states, &key);
#endif
  (void)task; /* task-local storage goes with the task */
}

/* Cheap and never wrong when it says no. Every switch of every thread passes here: keep it to a few
 * loads. */
static always_inline bool maybe_target(struct task_struct* task) {
  if (config.all) return READ(task, pid) != 0;
  __u32 pid = READ(task, tgid), tid = READ(task, pid);
  return target_hints[pid & (DWELL_TARGET_HINTS - 1)] |
         target_hints[tid & (DWELL_TARGET_HINTS - 1)];
}

/* How often the task has left the CPU, this time included, by the scheduler's own count. */
static always_inline __u64 departures_of(struct task_struct* task) {
  return READ(task, nvcsw) + READ(task, nivcsw);
}

static always_inline bool in_targets(__u32 id, __u32 is_tid, __u64 start_boottime_ns) {
  struct dwell_target_key key = {.id = id, .is_tid = is_tid};
  __u64* start = bpf_map_lookup_elem(&targets, &key);
  /* Else the number was used again by a stranger. User space knows start times to the clock tick
   * only. */
  return start && start_boottime_ns - *start < 10000000;
}

static always_inline bool is_kernel_thread(struct task_struct* task) {
  return READ(task, flags) & PF_KTHREAD;
}

static always_inline bool is_target(struct task_struct* task) {
  __u32 pid = READ(task, tgid);
  if (READ(task, flags) & PF_IDLE || READ(task, pid) == 0 || pid == config.own_pid) return false;
  if (is_kernel_thread(task) ? !config.kernel_threads : !config.user_threads) return false;
  if (config.all) return true;
#ifdef DWELL_RAW_TP
  __u64 leader_start = BPF_CORE_READ(task, group_leader, start_boottime);
#else
  __u64 leader_start = task->group_leader->start_boottime;
#endif
  return in_targets(pid, 0, leader_start) ||
         in_targets(READ(task, pid), 1, READ(task, start_boottime));
}

static always_inline void read_comm(struct task_struct* task, char* comm) {
#ifdef DWELL_RAW_TP
  bpf_probe_read_kernel(comm, DWELL_COMM_BYTES,
                        (const void*)task + bpf_core_field_offset(struct task_struct, comm));
#else
  bpf_probe_read_kernel(comm, DWELL_COMM_BYTES, task->comm);
#endif
}

static always_inline void read_process_key(struct task_struct* task,
                                           struct dwell_process_key* key) {
  key->pid = READ(task, tgid);
  key->exec_id = (__u32)READ(task, self_exec_id);
#ifdef DWELL_RAW_TP
  key->start_boottime_ns = BPF_CORE_READ(task, group_leader, start_boottime);
#else
  key->start_boottime_ns = task->group_leader->start_boottime;
#endif
}

static always_inline __u64 mix(__u64 hash, __u64 word) {
  hash = (hash ^ word) * 0x9ddfea08eb382d69ull;
  return hash ^ (hash >> 43);
}

/* 64 bits over (tid, start, life): no counter shared by all CPUs, and unique as far as anybody will
 * see. */
static always_inline __u64 life_id(__u32 tid, __u64 start_boottime_ns, __u32 life) {
  return mix(mix(mix(config.hash_seed, tid), start_boottime_ns), life);
}

/* A state as it is before the first event of a thread: off or on the CPU for longer than the probe
 * can tell. */
static always_inline void describe_life(struct task_struct* task, struct thread_state* state) {
  read_process_key(task, &state->process);
  read_comm(task, state->comm);
  state->start_boottime_ns = READ(task, start_boottime);
  state->tid = READ(task, pid);
  state->thread = life_id(READ(task, pid), state->start_boottime_ns, state->life);
}

/* Not inlined: its 272 bytes of stack would be the caller's while that walks a stack. */
static __attribute__((noinline)) struct thread_state* make_state(struct task_struct* task,
                                                                 bool gap) {
  struct thread_state initial = {};
  if (!is_target(task)) return 0;
  describe_life(task, &initial);
  initial.gap = gap;
  return create_state(task, &initial);
}

/* States that the iterator `prepare` could not make: user space runs it again. */
__u32 unprepared = 0;

/* Set for good once a state could not be made: from then on one that is made late does not vouch
 * for the past. */
__u8 state_was_full = 0;

/* A target that should have a state by now. */
static always_inline struct thread_state* make_state_late(struct task_struct* task) {
  struct thread_state* state = make_state(task, state_was_full);
  if (!state && is_target(task)) {
    state_was_full = 1;
    count(DWELL_LOSS_STATE_FULL, 0);
  }
  return state;
}

/*
 * The first event of a thread tells what it was at before: `phase` and `wait_class`, since before
 * the probe looked. The seed, if there is one, knows more.
 */
static always_inline void adopt(struct task_struct* task, struct thread_state* state, __u32 phase,
                                __u8 wait_class) {
  state->cpu_time_ns = READ(task, se.sum_exec_runtime);
  state->departures = departures_of(task);
  barrier(); /* or one load serves two kinds of pointer, which the verifier refuses */
  if (state->seed.phase) {
    state->user_stack = state->seed.user_stack;
    state->raw_state = state->seed.raw_state;
    state->cause = state->seed.cause;
    state->cpu_time_ns = state->seed.cpu_time_ns;
    state->departures = state->seed.departures;
    wait_class = state->seed.wait_class;
    phase = state->seed.phase;
  } else {
    bool user_side = !(READ(task, flags) & PF_KTHREAD);
    state->user_stack = user_side ? DWELL_STACK_BEFORE_START : DWELL_STACK_NONE;
    state->cause = user_side ? DWELL_CAUSE_UNKNOWN : DWELL_CAUSE_KTHREAD;
  }
  state->wait_class = wait_class;
  state->phase = phase;
}

/* The state of a target at an event that shows it to have been in `phase`; null for everybody else.
 */
static always_inline struct thread_state* get_state(struct task_struct* task, __u32 phase,
                                                    __u8 wait_class) {
  struct thread_state* state = find_state(task);
  if (!state) state = make_state_late(task);
  if (state && state->phase == PHASE_UNKNOWN) adopt(task, state, phase, wait_class);
  return state;
}

#endif
