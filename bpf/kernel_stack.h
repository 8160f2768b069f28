/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * Kernel stacks, taken at switch-in: the thread about to run still sleeps on the stack it blocked
 * with, and how long it was away is known by now. The kernel's walker leaves out the scheduler's
 * own functions, and no tracing frame can be among them: the sleeping thread runs no probe.
 *
 * Most stacks are found by signature instead (docs/kernel-stacks.md): compare the words where the
 * return addresses of a known stack lie. Equal words mean the same stack, because the size of each
 * frame follows from its return address.
 */
#ifndef DWELL_BPF_KERNEL_STACK_H
#define DWELL_BPF_KERNEL_STACK_H

#include "user_stack.h"

enum { NO_WAY = DWELL_SIGNATURE_WAYS };

#ifndef DWELL_RAW_TP

/* Walks `task`, which sleeps, into scratch->stack. Returns the hash, 0 if not one frame was found.
 */
static always_inline __u64 walk_kernel_stack(struct task_struct* task, struct scratch* scratch) {
  long bytes = bpf_get_task_stack(task, scratch->stack.ips, DWELL_MAX_FRAMES * 8, 0);
  if (bytes <= 0) return 0;
  __u32 frames = (__u32)bytes / 8;
  __u64 hash = config.hash_seed;
  for (__u32 i = 0; i < DWELL_MAX_FRAMES; ++i) {
    if (i >= frames) break;
    hash = mix(hash, scratch->stack.ips[i]);
  }
  scratch->stack.count = frames;
  scratch->stack.flags =
      DWELL_STACK_KERNEL | (frames == DWELL_MAX_FRAMES ? DWELL_STACK_TRUNCATED : 0);
  return stack_id(hash);
}

static __attribute__((noinline)) __u64 walk_and_remember(struct task_struct* task,
                                                         struct scratch* scratch, __u64 now) {
  __u64 known;
  __u64 hash = walk_kernel_stack(task, scratch);
  count(DWELL_COUNT_KSTACK_WALK, 0);
  if (hash == 0) {
    count(DWELL_LOSS_KERNEL_STACK_FAULT, 0);
    return DWELL_STACK_LOST_FAULT;
  }
  struct dwell_process_key none = {};
  scratch->stack.process = none;
  scratch->stack.end = 0;
  return remember_stack(scratch, hash, now, DWELL_LOSS_KERNEL_STACKS_FULL, &known);
}

/* Are the words at the signature's slots those of the sleeping stack at `sp`? */
verified_once int signature_matches(const struct dwell_signature* signature,
                                    struct scratch* scratch, __u64 sp, __u64 top) {
  if (!signature || !scratch) return false;
  __u32 words = signature->words;
  if (signature->refuted || words > DWELL_SIGNATURE_WORDS || sp + words * 8 > top) return false;
  if (bpf_probe_read_kernel(scratch->words, words * 8, (const void*)sp) != 0) return false;
  for (__u32 i = 0; i < DWELL_SIGNATURE_PAIRS; ++i) {
    if (i >= signature->pairs) break;
    __u32 slot = signature->slot[i];
    if (slot >= DWELL_SIGNATURE_WORDS || scratch->words[slot] != signature->word[i]) return false;
  }
  return true;
}

/* Finds the signature that matches, looking first where the thread's last one was. *missing: the
 * first free way. */
static always_inline struct dwell_signature* find_signature(struct thread_state* state,
                                                            struct dwell_signature_key* key,
                                                            struct scratch* scratch, __u64 sp,
                                                            __u64 top) {
  __u16 last = state->signature_way;
  key->way = last;
  struct dwell_signature* signature = bpf_map_lookup_elem(&signatures, key);
  if (signature && signature_matches(signature, scratch, sp, top)) return signature;
  for (__u16 way = 0; way < DWELL_SIGNATURE_WAYS; ++way) {
    key->way = way;
    signature = bpf_map_lookup_elem(&signatures, key);
    if (!signature) return 0;
    if (way == last || !signature_matches(signature, scratch, sp, top)) continue;
    state->signature_way = way;
    return signature;
  }
  key->way = NO_WAY;
  return 0;
}

/* Gives user space a walked stack (in scratch->stack) and the words it was found among, to learn a
 * signature from. */
static always_inline void send_sample(const struct dwell_signature_key* key,
                                      const struct scratch* scratch, __u64 walked_hash, __u64 sp,
                                      __u64 top) {
  if (key->way == NO_WAY || scratch->stack.count > DWELL_SIGNATURE_PAIRS) return;
  struct dwell_kernel_stack_sample* sample = bpf_ringbuf_reserve(&samples, sizeof(*sample), 0);
  if (!sample) return; /* enough samples are waiting already */
  __u64 bytes = top - sp;
  if (bytes > sizeof(sample->stack)) bytes = sizeof(sample->stack);
  sample->key = *key;
  sample->walked_hash = walked_hash;
  sample->count = scratch->stack.count;
  sample->words = bytes / 8;
  __builtin_memcpy(sample->ips, scratch->stack.ips, sizeof(sample->ips));
  if (bpf_probe_read_kernel(sample->stack, bytes, (const void*)sp) != 0) sample->words = 0;
  bpf_ringbuf_submit(sample, BPF_RB_NO_WAKEUP);
}

/* Of a stack that was just walked, unless this was done for it before. Most threads that sleep
 * through the window share few stacks. */
static always_inline void send_first_sample(struct task_struct* task, struct thread_state* state,
                                            struct scratch* scratch, __u64 id) {
  __u8* known = config.sched_text_start ? bpf_map_lookup_elem(&known_stacks, &id) : 0;
  if (!known || *known == STACK_SAMPLED) return;
  *known = STACK_SAMPLED;
  struct dwell_signature_key key = {.cause = state->cause};
  if (state->cause == DWELL_CAUSE_KTHREAD) key.tid = task->pid;
  __u64 sp = task->thread.sp;
  send_sample(&key, scratch, id, sp, (sp | (X86_THREAD_BYTES - 1)) + 1);
}

/* Walks a stack that was found by signature as well. The signature is dropped for good if it named
 * another. */
static always_inline __u64 verify(struct dwell_signature* signature, struct task_struct* task,
                                  struct scratch* scratch, __u64 now) {
  __u64 walked = walk_kernel_stack(task, scratch);
  if (walked == signature->walked_hash) {
    count(DWELL_COUNT_KSTACK_VERIFIED, 0);
    return signature->stack;
  }
  count(DWELL_LOSS_KSTACK_MISMATCH, 0);
  signature->refuted = 1;
  return walk_and_remember(task, scratch, now);
}

/* The kernel stack of `task`, which is about to run and was blocked. Returns its id or a
 * placeholder. */
static always_inline __u64 take_kernel_stack(struct task_struct* task, struct thread_state* state,
                                             struct scratch* scratch, __u64 now) {
  if (config.sched_text_start == 0) return walk_and_remember(task, scratch, now);
  struct dwell_signature_key key = {.cause = state->cause};
  if (state->cause == DWELL_CAUSE_KTHREAD) key.tid = task->pid;
  __u64 sp = task->thread.sp;
  __u64 top = (sp | (X86_THREAD_BYTES - 1)) + 1; /* stacks are aligned to their size */
  struct dwell_signature* signature = find_signature(state, &key, scratch, sp, top);
  if (signature) {
    count(DWELL_COUNT_KSTACK_HIT, 0);
    if ((state->books.intervals & (config.verify_every - 1)) == 0)
      return verify(signature, task, scratch, now);
    return signature->stack;
  }
  __u64 id = walk_and_remember(task, scratch, now);
  if (id >= DWELL_STACK_FIRST) send_sample(&key, scratch, id, sp, top);
  return id;
}

/* Here a stack can wait until the thread comes back. */
static always_inline void note_kernel_stack(void* ctx, struct thread_state* state,
                                            struct scratch* scratch, __u64 now) {}

#else /* DWELL_RAW_TP: the helper takes no plain address, so the stack must be taken while the \
         thread is current */

/* With the frames of the probe and the scheduler at its leaf: user space cuts them off. */
static always_inline void note_kernel_stack(void* ctx, struct thread_state* state,
                                            struct scratch* scratch, __u64 now) {
  __u64 known, hash = config.hash_seed;
  struct dwell_process_key none = {};
  state->kernel_stack = DWELL_STACK_NOT_TAKEN;
  if (!config.kernel_stacks ||
      (!is_blocked_class(state->wait_class) && !config.runnable_kernel_stacks))
    return;
  long bytes = bpf_get_stack(ctx, scratch->stack.ips, DWELL_MAX_FRAMES * 8, 0);
  count(DWELL_COUNT_KSTACK_WALK, 0);
  state->kernel_stack = DWELL_STACK_LOST_FAULT;
  if (bytes <= 0) {
    count(DWELL_LOSS_KERNEL_STACK_FAULT, 0);
    return;
  }
  __u32 frames = (__u32)bytes / 8;
  for (__u32 i = 0; i < DWELL_MAX_FRAMES; ++i) {
    if (i >= frames) break;
    hash = mix(hash, scratch->stack.ips[i]);
  }
  scratch->stack.count = frames;
  scratch->stack.flags =
      DWELL_STACK_KERNEL | (frames == DWELL_MAX_FRAMES ? DWELL_STACK_TRUNCATED : 0);
  scratch->stack.process = none;
  scratch->stack.end = 0;
  state->kernel_stack =
      remember_stack(scratch, stack_id(hash), now, DWELL_LOSS_KERNEL_STACKS_FULL, &known);
}

static always_inline __u64 take_kernel_stack(struct task_struct* task, struct thread_state* state,
                                             struct scratch* scratch, __u64 now) {
  return state->kernel_stack;
}

static always_inline __u64 walk_and_remember(struct task_struct* task, struct scratch* scratch,
                                             __u64 now) {
  struct thread_state* state = find_state(task);
  return state ? state->kernel_stack : DWELL_STACK_NOT_TAKEN;
}

static always_inline void send_first_sample(struct task_struct* task, struct thread_state* state,
                                            struct scratch* scratch, __u64 id) {}

#endif

#endif
