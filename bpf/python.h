/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The frames of the CPython interpreter under a user stack (docs/stacks.md): of a thread whose
 * process was found to run one. The thread's state is looked for once and remembered; the
 * interpreter itself keeps the number of the thread there, so that a wrong one is noticed.
 *
 * Everything read belongs to the process: loops and wild pointers cost a bounded number of reads.
 * Called behind a handler's deepest frame, so functions here keep to 128 bytes of stack together.
 */
#ifndef DWELL_BPF_PYTHON_H
#define DWELL_BPF_PYTHON_H

#include "abi/python.h"
#include "unwind.h"

enum {
  PYTHON_THREADS = 8192,   /* remembered; another takes the place of one that has it */
  PYTHON_STATES_MAX = 512, /* thread states and interpreters looked at for one thread */
  PYTHON_FRAMES_MAX = 2 * DWELL_MAX_FRAMES, /* shims among them */
  PYTHON_RING_BYTES = 1 << 20, /* a thousand stacks of 127 frames; read within milliseconds */
  PYTHON_TRIES = 8,            /* then a thread without a state is looked for less and less often */
  PYTHON_TRIES_PAUSE = 1024,   /* ... but every so many times */
};
#define PYTHON_BEGINS (1ull << 63)

enum python_end { PYTHON_GO_ON, PYTHON_DONE, PYTHON_FOUND };

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, DWELL_PYTHON_LAYOUTS);
  __type(key, __u32);
  __type(value, struct dwell_python_layout);
} python_layouts SEC(".maps");

/*
 * struct dwell_stack_record of Python frames and of pairs. A ring of its own, so that these alone
 * wake user space: it has to read the code objects before the process ends.
 */
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, PYTHON_RING_BYTES);
} python_stacks SEC(".maps");

/* Two CPUs may write one at a time: whatever comes of it is checked before it is used. */
struct python_thread {
  __u64 thread; /* thread_state.thread of whose it is */
  __u64 state;  /* address of its PyThreadState, 0: none was found */
  __u32 native_id;
  __u32 tries;
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, PYTHON_THREADS);
  __type(key, __u32);
  __type(value, struct python_thread);
} python_threads SEC(".maps");

/* What gettid() tells the thread: its number in the innermost pid namespace. */
static always_inline __u32 native_id_of(struct task_struct* task) {
  struct pid* pid = BPF_CORE_READ(task, thread_pid);
  __u32 nr = 0;
  if (!pid) return 0;
  __u64 at = bpf_core_field_offset(struct pid, numbers) + bpf_core_field_offset(struct upid, nr) +
             BPF_CORE_READ(pid, level) * (__u64)bpf_core_type_size(struct upid);
  bpf_probe_read_kernel(&nr, sizeof(nr), (void*)pid + at);
  return nr;
}

static always_inline struct dwell_python_layout* layout_of(const struct scratch* scratch) {
  __u32 number = scratch->walk.python_layout;
  return bpf_map_lookup_elem(&python_layouts, &number);
}

/* 0 if it cannot be read, or is none. */
static always_inline __u64 read_pointer(struct task_struct* other, struct scratch* scratch,
                                        __u64 address) {
  if (read_user(other, &scratch->walk.word, 8, address) != 0) return 0;
  return scratch->walk.word;
}

static always_inline bool has_native_id(struct task_struct* other, struct scratch* scratch,
                                        const struct dwell_python_layout* layout) {
  __u64 state = scratch->python.state;
  return read_pointer(other, scratch, state + layout->thread_native_id) ==
         scratch->python.native_id;
}

/* Looks at the next thread state: those of an interpreter, then those of the next. */
static always_inline __u32 look_at_state(struct task_struct* other, struct scratch* scratch) {
  struct python_walk* walk = &scratch->python;
  struct dwell_python_layout* layout = layout_of(scratch);
  if (!layout) return PYTHON_DONE;
  if (walk->state == 0) {
    __u64 interpreter = walk->interpreter;
    if (interpreter == 0) return PYTHON_DONE;
    walk->state = read_pointer(other, scratch, interpreter + layout->interpreter_threads);
    walk->interpreter = read_pointer(other, scratch, interpreter + layout->interpreter_next);
    return PYTHON_GO_ON;
  }
  if (has_native_id(other, scratch, layout)) return PYTHON_FOUND;
  walk->state = read_pointer(other, scratch, walk->state + layout->thread_next);
  return PYTHON_GO_ON;
}

verified_once __u32 look_at_current_state(struct scratch* scratch) {
  return scratch ? look_at_state(0, scratch) : PYTHON_DONE;
}

/* Keeps the frame that lies in walk->words, and goes to its caller. */
static always_inline __u32 keep_python_frame(struct scratch* scratch,
                                             const struct dwell_python_layout* layout) {
  struct python_walk* walk = &scratch->python;
  struct dwell_stack_record* stack = &scratch->python_stack;
  bool is_entry = ((const __u8*)walk->words)[layout->frame_entry & 127] >= layout->entry_min;
  walk->frame = walk->words[layout->frame_previous / 8 & 15];
  if (is_entry && layout->entry_is_shim) {
    walk->begins = 1;
    return PYTHON_GO_ON;
  }
  if (stack->count >= DWELL_MAX_FRAMES) {
    walk->is_cut = 1;
    return PYTHON_DONE;
  }
  /* The low bits tag references since 3.14. */
  __u64 code = DWELL_PYTHON_CODE(walk->words[layout->frame_code / 8 & 15]) & ~7ull;
  __u64 instruction =
      (walk->words[layout->frame_instruction / 8 & 15] - code - layout->code_instructions) / 2;
  if (instruction > DWELL_PYTHON_NO_INSTRUCTION) instruction = DWELL_PYTHON_NO_INSTRUCTION;
  __u64 word = code | instruction << 48 | (__u64)walk->begins << 63;
  walk->begins = is_entry;
  walk->hash = mix(walk->hash, word);
  stack->ips[stack->count & DWELL_MAX_FRAMES] = word;
  stack->count++;
  return PYTHON_GO_ON;
}

static always_inline __u32 step_python(struct task_struct* other, struct scratch* scratch) {
  struct python_walk* walk = &scratch->python;
  struct dwell_python_layout* layout = layout_of(scratch);
  if (!layout || walk->frame == 0) return PYTHON_DONE;
  __u32 bytes = layout->frame_bytes;
  if (bytes > DWELL_PYTHON_FRAME_BYTES) bytes = DWELL_PYTHON_FRAME_BYTES;
  if (walk->frame & 7 || read_user(other, walk->words, bytes, walk->frame) != 0) {
    walk->is_cut = 1;
    return PYTHON_DONE;
  }
  return keep_python_frame(scratch, layout);
}

verified_once __u32 step_current_python(struct scratch* scratch) {
  return scratch ? step_python(0, scratch) : PYTHON_DONE;
}

/* The leaf frame of the state, 0: it runs none. */
static always_inline __u64 leaf_frame(struct task_struct* other, struct scratch* scratch,
                                      const struct dwell_python_layout* layout) {
  __u64 frame = read_pointer(other, scratch, scratch->python.state + layout->thread_frame);
  if (frame == 0 || layout->indirect_frame == DWELL_PYTHON_DIRECT) return frame;
  return read_pointer(other, scratch, frame + layout->indirect_frame);
}

/* The place of what is known of the thread; made its own if it was another's. */
static always_inline struct python_thread* find_python_thread(struct task_struct* other,
                                                              __u64 thread) {
  __u32 place = thread % PYTHON_THREADS;
  struct python_thread* known = bpf_map_lookup_elem(&python_threads, &place);
  if (!known || known->thread == thread) return known;
  known->thread = thread;
  known->state = 0;
  known->tries = 0;
  known->native_id = native_id_of(other ? other : bpf_get_current_task_btf());
  return known;
}

/* Whether this is the time to look for the state of a thread that had none so far. */
static always_inline bool is_worth_a_look(struct python_thread* known) {
  __u32 tries = known->tries++;
  return tries < PYTHON_TRIES || (tries & (tries - 1)) == 0 || tries % PYTHON_TRIES_PAUSE == 0;
}

/* Stands at the state that the thread had the last time. False: it has to be looked for. */
static always_inline bool has_known_state(struct task_struct* other, struct scratch* scratch,
                                          const struct python_thread* known,
                                          const struct dwell_python_layout* layout) {
  scratch->python.native_id = known->native_id;
  scratch->python.state = known->state;
  return known->state != 0 && has_native_id(other, scratch, layout);
}

static always_inline void begin_search(struct task_struct* other, struct scratch* scratch,
                                       const struct dwell_python_layout* layout) {
  struct python_walk* walk = &scratch->python;
  walk->state = 0;
  walk->interpreter =
      read_pointer(other, scratch, scratch->walk.python_runtime + layout->runtime_interpreters);
}

static always_inline void begin_python_walk(struct task_struct* other, struct scratch* scratch,
                                            const struct dwell_python_layout* layout) {
  struct python_walk* walk = &scratch->python;
  struct dwell_stack_record* stack = &scratch->python_stack;
  walk->frame = leaf_frame(other, scratch, layout);
  walk->begins = 1;
  walk->is_cut = 0;
  walk->hash = mix(config.hash_seed, stack->process.start_boottime_ns);
  walk->hash = mix(mix(walk->hash, stack->process.pid), stack->process.exec_id);
  stack->count = 0;
}

/* Sends what is in scratch->python_stack under that id, unless it was sent. 0: user space has it.
 */
verified_once int send_python(struct scratch* scratch, __u64 id) {
  __u8 sent = STACK_SENT;
  if (!scratch) return -1;
  if (bpf_map_lookup_elem(&known_stacks, &id)) return 0;
  long failure = bpf_map_update_elem(&known_stacks, &id, &sent, BPF_NOEXIST);
  if (failure == -17 /* EEXIST: another CPU was faster */) return 0;
  if (failure) {
    count(DWELL_LOSS_USER_STACKS_FULL, 0);
    return -1;
  }
  struct dwell_stack_record* record = &scratch->python_stack;
  record->hash = id;
  __u32 bytes = DWELL_STACK_RECORD_HEADER_BYTES + (record->count & DWELL_MAX_FRAMES) * 8;
  if (bpf_ringbuf_output(&python_stacks, record, bytes, BPF_RB_FORCE_WAKEUP) == 0) return 0;
  bpf_map_delete_elem(&known_stacks, &id); /* to be sent at the next sight */
  count(DWELL_COUNT_STACK_RING_FULL, 0);
  return -1;
}

/*
 * Sends the Python frames that were walked, and that they belong to the user stack `native`.
 * Returns the id of both together; what cannot be sent is left out, and the user stack stands
 * alone.
 */
static always_inline __u64 finish_python(struct scratch* scratch, __u64 native) {
  struct python_walk* walk = &scratch->python;
  struct dwell_stack_record* stack = &scratch->python_stack;
  if (walk->frame != 0) walk->is_cut = 1;
  if (walk->is_cut) count(DWELL_COUNT_PYTHON_CUT, 0);
  if (stack->count == 0) return native;
  count(DWELL_COUNT_PYTHON, 0);
  __u64 python = stack_id(mix(walk->hash, walk->is_cut));
  __u64 pair = stack_id(mix(mix(config.hash_seed, native), python));
  if (bpf_map_lookup_elem(&known_stacks, &pair)) return pair;
  stack->flags = DWELL_STACK_PYTHON | (walk->is_cut ? DWELL_STACK_TRUNCATED : 0);
  stack->end = scratch->walk.python_layout;
  if (send_python(scratch, python) != 0) return native;
  stack->flags = DWELL_STACK_PAIR;
  stack->count = 2;
  stack->ips[0] = native;
  stack->ips[1] = python;
  return send_python(scratch, pair) == 0 ? pair : native;
}

/* Of the current task, whose user stack is `native`. Returns the id of the stack with its Python
 * frames, or `native`. */
verified_once __u64 take_python(struct scratch* scratch, struct thread_state* state, __u64 native) {
  if (!scratch || !state) return native;
  struct dwell_python_layout* layout = layout_of(scratch);
  struct python_thread* known = find_python_thread(0, state->thread);
  if (!layout || !known) return native;
  if (!has_known_state(0, scratch, known, layout)) {
    __u32 end = is_worth_a_look(known) ? PYTHON_GO_ON : PYTHON_DONE;
    if (end == PYTHON_GO_ON) begin_search(0, scratch, layout);
    for (__u32 i = 0; i < PYTHON_STATES_MAX && end == PYTHON_GO_ON; ++i)
      end = look_at_current_state(scratch);
    if (end != PYTHON_FOUND) {
      known->state = 0;
      count(DWELL_COUNT_PYTHON_NO_THREAD, 0);
      return native;
    }
    known->state = scratch->python.state;
    known->tries = 0;
  }
  begin_python_walk(0, scratch, layout);
  for (__u32 i = 0, end = PYTHON_GO_ON; i < PYTHON_FRAMES_MAX && end == PYTHON_GO_ON; ++i)
    end = step_current_python(scratch);
  return finish_python(scratch, native);
}

struct other_python {
  struct task_struct* task;
  struct scratch* scratch;
  __u32 end;
};

static long look_at_other_state(__u32 index, struct other_python* walk) {
  walk->end = look_at_state(walk->task, walk->scratch);
  return walk->end != PYTHON_GO_ON;
}

static long step_other_python(__u32 index, struct other_python* walk) {
  walk->end = step_python(walk->task, walk->scratch);
  return walk->end != PYTHON_GO_ON;
}

/* The same of a sleeping thread, in a sleepable iterator. */
static always_inline __u64 take_other_python(struct task_struct* task, struct scratch* scratch,
                                             struct thread_state* state, __u64 native) {
  struct other_python walk = {.task = task, .scratch = scratch, .end = PYTHON_GO_ON};
  struct dwell_python_layout* layout = layout_of(scratch);
  struct python_thread* known = find_python_thread(task, state->thread);
  if (!layout || !known) return native;
  if (!has_known_state(task, scratch, known, layout)) {
    begin_search(task, scratch, layout);
    bpf_loop(PYTHON_STATES_MAX, look_at_other_state, &walk, 0);
    if (walk.end != PYTHON_FOUND) {
      count(DWELL_COUNT_PYTHON_NO_THREAD, 0);
      return native;
    }
    known->state = scratch->python.state;
  }
  begin_python_walk(task, scratch, layout);
  bpf_loop(PYTHON_FRAMES_MAX, step_other_python, &walk, 0);
  return finish_python(scratch, native);
}

#endif
