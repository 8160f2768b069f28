/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The off-CPU probe: small programs on scheduler tracepoints, and iterators that open and close the
 * window. What they say to user space is in abi/off_cpu.h; what the words mean is in
 * ARCHITECTURE.md.
 */
// sched_switch         prev goes off (why, user stack), next comes on (how long, kernel stack, row)
// sched_waking         where blocked time ends and run-queue time begins
// task_newtask         a thread is created: its state is made; children of targets become targets
// sched_wakeup_new     ... and waits for its first CPU
// sched_process_exec   the thread goes on as another program
// task_rename          ... under another name
// prepare, seed        all threads before the window; those without an event at its start
// close_window         what is still open at the end of the window
#include "switch.h"

#ifdef DWELL_RAW_TP
#define HOOK(name) SEC("raw_tp/" name)
#else
#define HOOK(name) SEC("tp_btf/" name)
#endif

char LICENSE[] SEC("license") = "Dual BSD/GPL";

HOOK("sched_switch")
int on_sched_switch(__u64* ctx) {
  struct task_struct* prev = (void*)ctx[1];
  struct task_struct* next = (void*)ctx[2];
  bool off = maybe_target(prev), on = maybe_target(next);
  if ((!off && !on) || window.start_ns == 0) return 0;
  __u32 prev_state = config.switch_tells_state ? (__u32)ctx[3] : live_state(prev);
  __u64 now = bpf_ktime_get_ns();
  struct scratch* scratch = get_scratch(&switch_scratch);
  if (!scratch) return 0;
  if (window.end_ns && now >= window.end_ns) {
    switch_after_window(ctx, prev, next, prev_state, now, scratch);
    return 0;
  }
  if (off) switch_out(ctx, prev, ctx[0], prev_state, now, scratch);
  if (on) switch_in(ctx, next, now, scratch);
  return 0;
}

HOOK("sched_waking")
int on_sched_waking(__u64* ctx) {
  struct task_struct* task = (void*)ctx[0];
  if (!maybe_target(task) || window.start_ns == 0) return 0;
  struct thread_state* state = find_state(task);
  if (!state) return 0;
  __u64 now = bpf_ktime_get_ns();
  bool over = window.end_ns && now >= window.end_ns;
  if (state->phase == PHASE_UNKNOWN && !over && !READ(task, on_cpu)) {
    __u32 raw = live_state(task) & ~TASK_FREEZABLE;
    if (raw != TASK_RUNNING) adopt(task, state, PHASE_OFF, blocked_class(raw, in_iowait(task)));
  }
  /* After the window as well: it tells that the thread slept until then. */
  *(volatile __u64*)&state->waking_ns = now;
  return 0;
}

/* A new process whose parent is a target becomes one, if children are to be followed. */
static always_inline void inherit_target(struct task_struct* child) {
  struct task_struct* parent = READ(child, real_parent);
  __u32 pid = READ(child, tgid);
  if (config.all || !config.follow || READ(child, pid) != (int)pid) return;
  if (!target_hints[READ(parent, tgid) & (DWELL_TARGET_HINTS - 1)]) return;
#ifdef DWELL_RAW_TP
  __u64 leader_start = BPF_CORE_READ(parent, group_leader, start_boottime);
#else
  __u64 leader_start = parent->group_leader->start_boottime;
#endif
  if (!in_targets(READ(parent, tgid), 0, leader_start)) return;
  struct dwell_target_key key = {.id = pid};
  __u64 start = READ(child, start_boottime);
  if (bpf_map_update_elem(&targets, &key, &start, BPF_ANY) != 0) {
    count(DWELL_LOSS_TARGETS_FULL, 0);
    return;
  }
  target_hints[pid & (DWELL_TARGET_HINTS - 1)] = 1;
}

/* No lock of the scheduler is held here: the place to make the state. */
HOOK("task_newtask")
int on_task_newtask(__u64* ctx) {
  struct task_struct* task = (void*)ctx[0];
  if (window.end_ns) return 0; /* or the closing iterator would take it for one of the window's */
  inherit_target(task);
  inherit_tables(task);
  if (maybe_target(task)) make_state(task, false);
  return 0;
}

HOOK("sched_wakeup_new")
int on_sched_wakeup_new(__u64* ctx) {
  struct task_struct* task = (void*)ctx[0];
  if (!maybe_target(task) || window.start_ns == 0) return 0;
  __u64 now = bpf_ktime_get_ns();
  if (window.end_ns && now >= window.end_ns) return 0;
  struct thread_state* state = get_state(task, PHASE_OFF, DWELL_CLASS_NEW);
  if (!state) return 0;
  state->cause = DWELL_CAUSE_NEW_THREAD;
  state->user_stack = DWELL_STACK_NONE;
  state->since_ns = state->birth_ns = now;
  state->born = now > window.start_ns;
  state->gap = 0;
  return 0;
}

/* Returns the state if a new life has begun. */
static always_inline struct thread_state* next_life(void* ctx, struct task_struct* task,
                                                    __u8 ended) {
  if (!maybe_target(task) || window.start_ns == 0) return 0;
  struct thread_state* state = find_state(task);
  if (!state) return 0;
  __u64 now = bpf_ktime_get_ns();
  if (window.end_ns && now >= window.end_ns) return 0;
  if (state->phase == PHASE_UNKNOWN) adopt(task, state, PHASE_RUNNING, DWELL_CLASS_NONE);
  if (state->phase != PHASE_RUNNING && state->phase != PHASE_OFF) return 0;
  if (ended == DWELL_END_RENAMED && state->life >= config.renames_max) return 0;
  struct scratch* scratch = get_scratch(&life_scratch);
  if (!scratch) return 0;
  if (state->phase ==
      PHASE_OFF) { /* it came on unseen; the scheduler's account may be a tick old */
    __u64 cpu_time = READ(task, se.sum_exec_runtime);
    work_out_switch_in(ctx, task, state, cpu_time, not_backwards(state, now), scratch);
    state->phase = PHASE_RUNNING;
  }
  book_stretch(task, state, 0, now);
  end_life(task, state, now, ended, scratch);
  begin_life(task, state, now);
  return state;
}

HOOK("sched_process_exec")
int on_sched_process_exec(__u64* ctx) {
  forget_tables((void*)ctx[0]);
  next_life(ctx, (void*)ctx[0], DWELL_END_EXECUTED);
  return 0;
}

/*
 * Told before the name changes. Only a thread that renames itself: its state is nobody else's while
 * it runs. exec renames too, and tells it above.
 */
HOOK("task_rename")
int on_task_rename(__u64* ctx) {
  struct task_struct* task = (void*)ctx[0];
  if (READ(task, pid) != (int)bpf_get_current_pid_tgid()) return 0;
#ifdef DWELL_RAW_TP
  if (BPF_CORE_READ_BITFIELD_PROBED(task, in_execve)) return 0;
#else
  if (BPF_CORE_READ_BITFIELD(task, in_execve)) return 0;
#endif
  struct thread_state* state = next_life(ctx, task, DWELL_END_RENAMED);
  if (!state) return 0;
  /* The task still has its old name. */
  __builtin_memset(state->comm, 0, DWELL_COMM_BYTES);
  bpf_probe_read_kernel_str(state->comm, DWELL_COMM_BYTES, (const char*)ctx[1]);
  return 0;
}

/* ---- run by user space ---- */

/* Reads the kernel's code: which functions call which tells what stands on a stack. */
__u8 kernel_chunk[4096] = {};

SEC("raw_tp")
int read_kernel(__u64* ctx) {
  return bpf_probe_read_kernel(kernel_chunk, sizeof(kernel_chunk), (const void*)ctx[0]);
}

/* ---- the window ---- */

/* Before the window: every target gets its state. */
SEC("iter/task")
int prepare(struct bpf_iter__task* ctx) {
  struct task_struct* task = ctx->task;
  if (!task || task->exit_state || !is_target(task)) return 0;
  struct thread_state* state = find_state(task);
  if (state)
    describe_life(task, state); /* it may have become another program since it was created */
  else if (!make_state(task, false))
    unprepared++;
  return 0;
}

static always_inline bool asleep(struct task_struct* task) {
  __u32 raw = live_state(task) & ~TASK_FREEZABLE;
  return raw != TASK_RUNNING && !(raw & (TASK_WAKING | TASK_NEW));
}

/*
 * After the start: tells the state of a thread what the thread is at. Whoever reads it finds either
 * all of it or nothing, since `phase` comes last; an event that comes in between makes it void.
 */
static always_inline void seed_thread(struct task_struct* task, struct scratch* scratch,
                                      bool read_stack) {
  struct thread_state* state = find_state(task);
  if (!state)
    state =
        make_state(task, state_was_full); /* created after `prepare`, when no state could be made */
  if (!state) {
    if (is_target(task) && !task->exit_state) unprepared++;
    return;
  }
  if (state->phase != PHASE_UNKNOWN) return;
  struct seed_state* seed = &state->seed;
  __u32 raw = live_state(task) & ~TASK_FREEZABLE;
  bool user_side = has_user_side(task);
  __u8 phase = PHASE_OFF;
  seed->cpu_time_ns = READ(task, se.sum_exec_runtime);
  seed->departures = departures_of(task);
  seed->user_stack = user_side ? DWELL_STACK_BEFORE_START : DWELL_STACK_NONE;
  seed->cause = user_side ? DWELL_CAUSE_UNKNOWN : DWELL_CAUSE_KTHREAD;
  if (task->on_cpu) {
    phase = PHASE_RUNNING;
  } else if (!asleep(task)) {
    seed->wait_class = DWELL_CLASS_RUNNABLE;
  } else {
    seed->raw_state = raw;
    seed->wait_class = blocked_class(raw, in_iowait(task));
    read_regs(task, &scratch->regs);
    seed->cause = entry_cause(task, &scratch->regs);
    if (user_side && read_stack && config.user_stacks)
      seed->user_stack = take_user_stack(task, state, scratch, bpf_ktime_get_ns());
  }
  *(volatile __u8*)&seed->phase = phase;
}

SEC("iter/task")
int seed(struct bpf_iter__task* ctx) {
  struct scratch* scratch = get_scratch(&iterator_scratch);
  struct task_struct* task = ctx->task;
  if (task && scratch) seed_thread(task, scratch, false);
  return 0;
}

#ifndef DWELL_RAW_TP
/* Since 5.18: reads the user stacks of sleeping threads as well. */
SEC("iter.s/task")
int seed_with_stacks(struct bpf_iter__task* ctx) {
  struct scratch* scratch = get_scratch(&iterator_scratch);
  struct task_struct* task = ctx->task;
  if (task && scratch) seed_thread(task, scratch, true);
  return 0;
}
#endif

#ifndef DWELL_RAW_TP
/*
 * Tables have come into force: those who sleep since before, in a process that had just begun, get
 * a whole stack after all. It is theirs unless they have slept in another way since.
 */
SEC("iter.s/task")
int rewalk(struct bpf_iter__task* ctx) {
  struct task_struct* task = ctx->task;
  struct scratch* scratch = get_scratch(&iterator_scratch);
  if (!task || !scratch) return 0;
  struct thread_state* state = find_state(task);
  if (!state || !state->stack_cut || state->phase != PHASE_OFF || task->on_cpu) return 0;
  __u32 pid = task->tgid;
  struct dwell_unwind_process* tables = bpf_map_lookup_elem(&unwind_processes, &pid);
  if (!tables || tables->version == state->tables_version) return 0;
  read_regs(task, &scratch->regs);
  __u64 cut = state->user_stack;
  __u64 whole = take_stack(task, state, scratch, bpf_ktime_get_ns());
  __sync_val_compare_and_swap(&state->user_stack, cut, whole);
  return 0;
}
#endif

/*
 * Runs twice, after the window: closes what is open and writes a record for every target that is
 * still alive. The kernel calls again for the same thread when its record did not fit into the
 * reader's buffer.
 */
SEC("iter/task")
int close_window(struct bpf_iter__task* ctx) {
  struct task_struct* task = ctx->task;
  struct scratch* scratch = get_scratch(&iterator_scratch);
  if (!task || !scratch || !is_target(task)) return 0;
  struct dwell_thread_record* record = &scratch->record;
  struct thread_state* state = find_state(task);
  __u64 after = window.end_ns + 1;
  if (!state) {
    struct thread_state unseen = {};
    describe_life(task, &unseen);
    write_record(task, &unseen, after, DWELL_END_ALIVE, record);
    record->flags |= DWELL_THREAD_UNSEEN;
    bpf_seq_write(ctx->meta->seq, record, sizeof(*record));
    return 0;
  }
  if (state->phase == PHASE_ENDED) return 0;
  bool eventless = state->phase == PHASE_UNKNOWN;
  if (eventless && state->seed.phase) adopt(task, state, PHASE_OFF, DWELL_CLASS_NONE);
  /* Neither an event nor a seed: created, but not awake before the end. Its start tells how little
   * there is to lose. */
  bool unseen = state->phase == PHASE_UNKNOWN;
  if (state->phase == PHASE_OFF) {
    /* Walk, then claim: if the claim holds, the thread slept all the while and the stack is the
     * right one. */
    __u64 kernel_stack = DWELL_STACK_NOT_TAKEN;
    if (config.kernel_stacks && is_blocked_class(state->wait_class)) {
      kernel_stack = walk_and_remember(task, scratch, window.end_ns);
      send_first_sample(task, state, scratch, kernel_stack);
    }
    if (claim(state, PHASE_OFF)) {
      if (asleep(task)) state->waking_ns = 0; /* of a wake-up that found it running */
      close_interval(ctx, task, state, scratch, after, kernel_stack);
      set_closed(state);
    }
  } else if (claim(state, PHASE_RUNNING)) {
    /* It may have left since the end: its switches tell, unless there was never any. */
    if (eventless)
      book_running(state, after);
    else
      book_stretch(task, state, 0, after);
    set_closed(state);
  }
  /* A switch on another CPU is at it: the next run of the iterator finds the books complete. */
  if (*(volatile __u32*)&state->phase == PHASE_CLOSING) return 0;
  if (!write_record(task, state, after, DWELL_END_ALIVE, record)) return 0;
  if (unseen) record->flags |= DWELL_THREAD_UNSEEN;
  if (bpf_seq_write(ctx->meta->seq, record, sizeof(*record)) == 0) state->phase = PHASE_ENDED;
  return 0;
}
