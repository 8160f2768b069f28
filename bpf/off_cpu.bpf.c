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
#include "timeline.h"

#ifdef DWELL_RAW_TP
#define HOOK(name) SEC("raw_tp/" name)
#else
#define HOOK(name) SEC("tp_btf/" name)
#endif

char LICENSE[] SEC("license") = "Dual BSD/GPL";

static always_inline struct scratch* get_scratch(void* map) {
  __u32 zero = 0;
  return bpf_map_lookup_elem(map, &zero);
}

/* The kernel stack of a thread that is about to run, if its class wants one. */
static always_inline __u64 kernel_stack_for(struct task_struct* task, struct thread_state* state,
                                            struct scratch* scratch, __u64 now) {
  if (!config.kernel_stacks) return DWELL_STACK_NONE;
  if (!is_blocked_class(state->wait_class) && !config.runnable_kernel_stacks)
    return DWELL_STACK_NOT_TAKEN;
  return take_kernel_stack(task, state, scratch, now);
}

/* Books the interval that ends at `now`; `kernel_stack` 0: take it if the interval is wanted. */
static always_inline void close_interval(void* ctx, struct task_struct* task,
                                         struct thread_state* state, struct scratch* scratch,
                                         __u64 now, __u64 kernel_stack) {
  struct interval* interval = &scratch->interval;
  if (!cut(state, now, interval)) return;
  book_interval(state, interval);
  if (wanted(state, interval)) {
    if (kernel_stack == 0) kernel_stack = kernel_stack_for(task, state, scratch, now);
    charge_row(state, interval, kernel_stack);
    if (config.timeline) send_interval(ctx, state, kernel_stack, scratch);
    return;
  }
  __u64 length = interval->to - interval->from;
  state->books.filtered_ns += length;
  state->books.filtered_intervals++;
  count(DWELL_COUNT_FILTERED, length);
}

/*
 * Some kernels do not tell every switch: where a protected thread leaves the CPU, no program runs.
 * Then `task` came on unseen, and leaves now. The scheduler's account of its CPU time tells since
 * when it has been running.
 */
static always_inline void work_out_switch_in(void* ctx, struct task_struct* task,
                                             struct thread_state* state, __u64 cpu_time, __u64 now,
                                             struct scratch* scratch) {
  __u64 ran = cpu_time - state->cpu_time_ns, came_on = now - ran;
  if (came_on < state->since_ns || came_on > now) came_on = state->since_ns;
  __u64 from = not_before_window(state->since_ns);
  count(DWELL_COUNT_MISSED_SWITCH_IN, came_on > from ? came_on - from : 0);
  close_interval(ctx, task, state, scratch, came_on, DWELL_STACK_MISSED);
  state->since_ns = came_on;
  state->waking_ns = 0;
}

/* `task` left the CPU `unseen` times since then: what it did not run, it was away. */
static always_inline void lose_absence(struct task_struct* task, struct thread_state* state,
                                       __u64 unseen, __u64 now) {
  __u64 from = not_before_window(state->since_ns), to = not_after_window(now);
  __u64 cpu_time = READ(task, se.sum_exec_runtime), ran = cpu_time - state->cpu_time_ns;
  __u64 away = to > from ? to - from : 0;
  if (ran > away) ran = away;
  state->books.running_ns += ran;
  state->books.lost_ns += away - ran;
  state->cpu_time_ns = cpu_time;
  state->departures += unseen;
  count_many(DWELL_LOSS_MISSED_SWITCH_OUT, unseen, away - ran);
}

/*
 * Books the time since `task` came on. It may have left and come back unseen, which the scheduler's
 * count tells. `leaving`: 1 if it leaves now, seen.
 */
static always_inline void book_stretch(struct task_struct* task, struct thread_state* state,
                                       __u32 leaving, __u64 now) {
  __s64 unseen = departures_of(task) - leaving - state->departures;
  if (unseen > 0)
    lose_absence(task, state, unseen, now);
  else
    book_running(state, now);
}

/*
 * The clocks of two CPUs may differ by a little. The time of a thread goes on from where it was:
 * nothing counts twice, and its books add up.
 */
static always_inline __u64 not_backwards(const struct thread_state* state, __u64 now) {
  if (now >= state->since_ns) return now;
  count(DWELL_COUNT_CLOCK_ANOMALY, state->since_ns - now);
  return state->since_ns;
}

static always_inline void switch_out(void* ctx, struct task_struct* task, bool preempt,
                                     __u32 prev_state, __u64 now, struct scratch* scratch) {
  struct thread_state* state = get_state(task, PHASE_RUNNING, DWELL_CLASS_NONE);
  if (!state || state->phase == PHASE_ENDED) return;
  count(DWELL_COUNT_SWITCHES, 0);
  now = not_backwards(state, now);
  __u64 cpu_time = READ(task, se.sum_exec_runtime);
  if (state->phase == PHASE_OFF) work_out_switch_in(ctx, task, state, cpu_time, now, scratch);
  book_stretch(task, state, 1, now);
  state->cpu_time_ns = cpu_time;
  state->departures = departures_of(task);
  if (prev_state & TASK_DEAD) {
    end_life(task, state, now, DWELL_END_EXITED, scratch);
    state->phase = PHASE_ENDED;
    forget_state(task);
    return;
  }
  read_regs(task, &scratch->regs);
  classify(task, state, preempt, prev_state, &scratch->regs);
  state->since_ns = now;
  state->phase = PHASE_OFF;
  state->user_stack = DWELL_STACK_NONE;
  if (config.user_stacks && has_user_side(task) &&
      config.class_mask >> (state->wait_class & 31) & 1)
    state->user_stack = take_stack(0, state, scratch, now);
  note_kernel_stack(ctx, state, scratch, now);
}

static always_inline void switch_in(void* ctx, struct task_struct* task, __u64 now,
                                    struct scratch* scratch) {
  struct thread_state* state = get_state(task, PHASE_OFF, DWELL_CLASS_RUNNABLE);
  if (!state || state->phase == PHASE_ENDED) return;
  now = not_backwards(state, now);
  __u64 unseen = departures_of(task) - state->departures;
  if (state->phase == PHASE_OFF && unseen == 0) {
    close_interval(ctx, task, state, scratch, now, 0);
  } else {
    if (state->phase == PHASE_OFF)
      work_out_switch_in(ctx, task, state, READ(task, se.sum_exec_runtime), now, scratch);
    lose_absence(task, state, unseen, now);
  }
  state->phase = PHASE_RUNNING;
  state->since_ns = now;
  state->waking_ns = 0;
}

/*
 * True for exactly one caller: the switch or the closing iterator, which may be at it at the same
 * time. Whoever gets it books the last stretch and then sets PHASE_CLOSED.
 */
static always_inline bool claim(struct thread_state* state, __u32 phase) {
#ifdef DWELL_RAW_TP
  if (state->phase != phase) return false;
  state->phase = PHASE_CLOSING;
  return true;
#else
  return __sync_val_compare_and_swap(&state->phase, phase, PHASE_CLOSING) == phase;
#endif
}

static always_inline void set_closed(struct thread_state* state) {
  barrier();
  *(volatile __u32*)&state->phase = PHASE_CLOSED;
}

/*
 * After the window nothing counts any more, but some things would be gone for the closing iterator:
 * the dead, the stack of a thread that wakes up, and whether one that leaves had left unseen.
 */
static always_inline void switch_after_window(void* ctx, struct task_struct* prev,
                                              struct task_struct* next, __u32 prev_state, __u64 now,
                                              struct scratch* scratch) {
  struct thread_state* state = maybe_target(next) ? find_state(next) : 0;
  if (state && claim(state, PHASE_OFF)) {
    close_interval(ctx, next, state, scratch, now, 0);
    set_closed(state);
  }
  state = maybe_target(prev) ? find_state(prev) : 0;
  if (!state || state->phase == PHASE_ENDED) return;
  if (claim(state, PHASE_RUNNING)) {
    book_stretch(prev, state, 1, now);
    set_closed(state);
  }
  if (!(prev_state & TASK_DEAD)) return;
  end_life(prev, state, now, DWELL_END_ALIVE, scratch);
  state->phase = PHASE_ENDED;
  forget_state(prev);
}

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
#ifndef DWELL_RAW_TP
  inherit_tables(task);
#endif
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
#ifndef DWELL_RAW_TP
  forget_tables((void*)ctx[0]);
#endif
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
