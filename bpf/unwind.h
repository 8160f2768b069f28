/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * The walk of a user stack, frame by frame: by unwind data where there is any, else by the frame
 * pointer, else it ends, with a reason (docs/stacks.md). The state is scratch->walk; the frames go
 * to scratch->stack.
 *
 * Memory is read in chunks: one helper call for several frames. In a handler a page that is not in
 * memory ends the walk; the iterator, which may sleep, fetches it.
 */
#ifndef DWELL_BPF_UNWIND_H
#define DWELL_BPF_UNWIND_H

#include "unwind_tables.h"
#include "walk.h"

enum {
  POINTER_LOST = 1, /* in place of a frame pointer that is not known; never aligned */
  LOWEST_CODE = 4096,
  STACK_CHANGES_MAX = 4,
  CHUNK_BELOW = 56, /* registers are saved this far below a return address */
  /* The signal frame of x86-64 Linux, from rsp at its restorer: include/uapi/asm/ucontext.h. */
  SIGNAL_FLAGS_MAX = 255, /* 7 is all there is so far */
  SIGNAL_RBP = 120,
  SIGNAL_RBX = 128,
  SIGNAL_RSP = 160,
  SIGNAL_RIP = 168,
};
#define HIGHEST_CODE                                                           \
  0x00ffffffffffffffull /* user addresses, with five-level page tables as well \
                         */

/* Reads `bytes` at `address` of the current task, or in a sleepable iterator of `other`. */
static always_inline long read_user(struct task_struct* other, void* to, __u32 bytes,
                                    __u64 address) {
#ifndef DWELL_RAW_TP
  if (other) return bpf_copy_from_user_task(to, bytes, (const void*)address, other, 0);
#endif
  return bpf_probe_read_user(to, bytes, (const void*)address);
}

/* Reads the word at `address` into walk->word. 0 on success. */
static always_inline long read_word(struct task_struct* other, struct scratch* scratch,
                                    __u64 address) {
  struct walk* walk = &scratch->walk;
  __u64 offset = address - walk->chunk_start;
  if (walk->chunk_start == 0 || offset > walk->chunk_bytes - 8) {
    walk->chunk_start = address - CHUNK_BELOW;
    walk->chunk_bytes = CHUNK_WORDS * 8;
    offset = CHUNK_BELOW;
    if (read_user(other, scratch->chunk, CHUNK_WORDS * 8, walk->chunk_start) != 0)
      walk->chunk_start = 0; /* it may cross into a page that is not there; the word need not */
  }
  if (walk->chunk_start == 0 || offset & 7) return read_user(other, &walk->word, 8, address);
  walk->word = scratch->chunk[offset / 8 & (CHUNK_WORDS - 1)];
  return 0;
}

verified_once int load_current_word(scratch_reference reference, __u64 address) {
  struct scratch* scratch = referred(reference);
  if (!scratch || read_word(0, scratch, address) != 0) return -1;
  __u32 number = scratch->walk.loads++;
  if (number < KEPT_LOADS) {
    scratch->loads[number].address = address;
    scratch->loads[number].word = scratch->walk.word;
  }
  return 0;
}

/* The same for the walk, which notes what it read of the current task (kept_walks.h). */
static always_inline long load(struct task_struct* other, struct scratch* scratch, __u64 address) {
  return other ? read_word(other, scratch, address) : load_current_word(refer_to(scratch), address);
}

/* The walk depends on a register that `load_number` gave. */
static always_inline void use(struct scratch* scratch, __u32 load_number, __u32 leaf_bit) {
  if (load_number == FROM_LEAF)
    scratch->walk.leaf_used |= leaf_bit;
  else if (load_number < KEPT_LOADS)
    scratch->loads[load_number].address &= ~NOT_USED;
}

/* Loads what may not matter: a saved register, say. Returns the number of the load in *number. */
static always_inline long load_unused(struct task_struct* other, struct scratch* scratch,
                                      __u64 address, __u32* number) {
  if (load(other, scratch, address) != 0) return -1;
  *number = other ? KEPT_LOADS : scratch->walk.loads - 1;
  if (*number < KEPT_LOADS) scratch->loads[*number].address |= NOT_USED;
  return 0;
}

/* Offsets of the registers in pt_regs by their DWARF numbers: what ptrace shows, so they stay. */
const volatile __u8 saved_at[DWELL_REGISTER_COUNT] = {80, 96, 88, 40, 104, 112, 32, 152,
                                                      72, 64, 56, 48, 24,  16,  8,  0};

/* Registers that a walk does not follow are known in the leaf frame only. 0 on success. */
static always_inline long load_register(struct task_struct* other, struct scratch* scratch,
                                        __u32 number) {
  struct walk* walk = &scratch->walk;
  if (number == DWELL_REGISTER_RSP) {
    walk->word = walk->sp;
  } else if (number == DWELL_REGISTER_RBP) {
    walk->word = walk->bp;
    use(scratch, walk->bp_load, LEAF_BP);
    return walk->bp == POINTER_LOST;
  } else if (number == DWELL_REGISTER_RBX) {
    walk->word = walk->bx;
    use(scratch, walk->bx_load, LEAF_BX);
    return walk->bx == POINTER_LOST;
  } else {
    if (!walk->is_leaf || number >= DWELL_REGISTER_COUNT) return -1;
    void* regs = saved_regs(other ? other : current_task());
    walk->loads += KEPT_LOADS; /* not to be kept: this register is none of those compared */
    return bpf_probe_read_kernel(&walk->word, 8, regs + saved_at[number]);
  }
  return 0;
}

/* A signal interrupted the caller: all its registers lie in the signal frame. */
static always_inline __u32 leave_signal_frame(struct task_struct* other, struct scratch* scratch) {
  struct walk* walk = &scratch->walk;
  __u64 frame = walk->sp;
  __u32 last = scratch->stack.count - 1;
  /* The handler returns to the first byte of this frame's code: it was not called from the byte
   * before. */
  if (last > 0) scratch->stack.ips[last & DWELL_MAX_FRAMES] = walk->ip + 1;
  if (load_unused(other, scratch, frame + SIGNAL_RBP, &walk->bp_load) != 0) return DWELL_WALK_FAULT;
  walk->bp = walk->word;
  if (load_unused(other, scratch, frame + SIGNAL_RBX, &walk->bx_load) != 0) return DWELL_WALK_FAULT;
  walk->bx = walk->word;
  if (load(other, scratch, frame + SIGNAL_RSP) != 0) return DWELL_WALK_FAULT;
  walk->sp = walk->word;
  if (load(other, scratch, frame + SIGNAL_RIP) != 0) return DWELL_WALK_FAULT;
  walk->ip = walk->word;
  walk->is_return = 0;
  walk->by_row++;
  return GO_ON;
}

/* Is the address right behind a call? `code`: the eight bytes before it. */
static always_inline bool is_behind_call(__u64 code) {
  __u8 sixth = code >> 16, fifth = code >> 24, third = code >> 40, second = code >> 48,
       first = code >> 56;
  if (fifth == 0xe8) return true;                                    /* call there */
  if (sixth == 0xff) return fifth == 0x15 || (fifth & 0xf8) == 0x90; /* call *there */
  if (third == 0xff) return (second & 0xf8) == 0x50;
  return second == 0xff && ((first & 0xf8) == 0xd0 || (first & 0xf8) == 0x10);
}

/* Does the address lie in known code, behind a call? */
static always_inline bool is_called_from(struct task_struct* other, struct scratch* scratch,
                                         __u64 caller) {
  struct walk* walk = &scratch->walk;
  if (find_mapping(walk->first_mapping, walk->mappings, caller - 1) == NO_INDEX) return false;
  bool called = load(other, scratch, caller - 8) == 0 && is_behind_call(walk->word);
  walk->chunk_start = 0;
  return called;
}

/*
 * A system call in code without unwind data is mostly that of a stub which keeps nothing on the
 * stack, as clone3 of glibc and those of Go: then its caller is at rsp, and a frame pointer would
 * lead past it. Believed only if it lies in known code, behind a call.
 */
static always_inline bool leave_stub(struct task_struct* other, struct scratch* scratch) {
  struct walk* walk = &scratch->walk;
  if (!walk->is_leaf || !walk->is_return || walk->mappings == 0) return false;
  if (load(other, scratch, walk->sp) != 0) return false;
  __u64 caller = walk->word;
  if (!is_called_from(other, scratch, caller)) return false;
  walk->sp += 8;
  walk->ip = caller;
  note_pointer_step(scratch);
  return true;
}

/*
 * Is this the frame of a caller on another stack? It may lie at lower addresses, as that of a
 * goroutine that waits in C code on the stack of its thread. Believed as the caller of a stub is,
 * and a few times only: a walk up never comes back to where it was.
 */
static always_inline bool is_on_other_stack(struct task_struct* other, struct scratch* scratch,
                                            __u64 frame) {
  struct walk* walk = &scratch->walk;
  if (walk->mappings == 0 || walk->stack_changes++ >= STACK_CHANGES_MAX) return false;
  return load(other, scratch, frame + 8) == 0 && is_called_from(other, scratch, walk->word);
}

/* What a signal handler returns to, in a C library that has no unwind data for it (musl): is this
 * `mov $15, %rax; syscall` or `mov $15, %eax; syscall`? */
static always_inline bool is_restorer(struct task_struct* other, struct scratch* scratch) {
  struct walk* walk = &scratch->walk;
  if (walk->is_leaf || !walk->is_return || walk->mappings == 0) return false;
  /* The signal frame begins with some flags: mostly that tells without a look at the code. The
   * code decides. */
  __u32 flags;
  if (load_unused(other, scratch, walk->sp, &flags) != 0 || walk->word > SIGNAL_FLAGS_MAX)
    return false;
  if (load(other, scratch, walk->ip) != 0) return false;
  return walk->word == 0x0f0000000fc0c748ull || walk->word << 8 == 0x050f0000000fb800ull;
}

/* No unwind data here. */
static always_inline __u32 follow_pointer(struct task_struct* other, struct scratch* scratch) {
  struct walk* walk = &scratch->walk;
  __u64 frame = walk->bp, caller;
  if (is_restorer(other, scratch)) return leave_signal_frame(other, scratch);
  __u32 astray = walk->mappings ? DWELL_WALK_BAD_POINTER : DWELL_WALK_NO_TABLES;
  if (leave_stub(other, scratch)) return GO_ON;
  use(scratch, walk->bp_load, LEAF_BP);
  if (frame == 0) return end_at_zero(walk, walk->by_pointer, DWELL_WALK_ROOT_POINTER);
  if (frame == POINTER_LOST) return DWELL_WALK_REGISTER_LOST;
  if (frame & 7) return astray;
  if (frame < walk->sp && !is_on_other_stack(other, scratch, frame)) return astray;
  if (load(other, scratch, frame + 8) != 0) return DWELL_WALK_FAULT;
  caller = walk->word;
  if (load_unused(other, scratch, frame, &walk->bp_load) != 0) return DWELL_WALK_FAULT;
  walk->bp = walk->word;
  walk->bx = POINTER_LOST;
  walk->sp = frame + 16;
  walk->ip = caller;
  walk->is_return = 1;
  note_pointer_step(scratch);
  return GO_ON;
}

/* The caller's value of a register that is saved as the rule says. */
static always_inline long restore(struct task_struct* other, struct scratch* scratch, __u8 kind,
                                  __s64 offset, __u64 cfa, __u64 frame, __u64* value,
                                  __u32* load_number) {
  struct walk* walk = &scratch->walk;
  if (kind == DWELL_SAVED_SAME) return 0;
  if (kind == DWELL_SAVED_LOST || (kind == DWELL_SAVED_AT_FRAME && frame == POINTER_LOST)) {
    *value = POINTER_LOST;
    return 0;
  }
  if (kind != DWELL_SAVED_AT_CFA) use(scratch, walk->bp_load, LEAF_BP);
  __u64 address = (kind == DWELL_SAVED_AT_CFA ? cfa : frame) + offset;
  if (load_unused(other, scratch, address, load_number) != 0) return -1;
  *value = walk->word;
  return 0;
}

/* The CFA of the frame into walk->word. */
static always_inline __u32 find_cfa(struct task_struct* other, struct scratch* scratch,
                                    const struct dwell_unwind_rule* rule) {
  struct walk* walk = &scratch->walk;
  if (rule->cfa_kind == DWELL_CFA_PLT) {
    walk->word = walk->sp + 8 + ((walk->ip & 15) >= (__u64)rule->cfa_add ? 8 : 0);
    return GO_ON;
  }
  if (rule->cfa_kind == DWELL_CFA_RULES_FULL) return DWELL_WALK_RULES_FULL;
  if (rule->cfa_kind != DWELL_CFA_REGISTER && rule->cfa_kind != DWELL_CFA_MEMORY)
    return DWELL_WALK_UNSUPPORTED;
  if (load_register(other, scratch, rule->cfa_register) != 0) return DWELL_WALK_REGISTER_LOST;
  walk->word += (__s64)rule->cfa_offset;
  if (rule->cfa_kind == DWELL_CFA_REGISTER) return GO_ON;
  if (load(other, scratch, walk->word) != 0) return DWELL_WALK_FAULT;
  walk->word += (__s64)rule->cfa_add;
  return GO_ON;
}

static always_inline __u32 follow_rule(struct task_struct* other, struct scratch* scratch,
                                       const struct dwell_unwind_rule* rule) {
  struct walk* walk = &scratch->walk;
  if (rule->cfa_kind == DWELL_CFA_ROOT) return DWELL_WALK_ROOT;
  if (rule->cfa_kind == DWELL_CFA_SIGNAL) return leave_signal_frame(other, scratch);
  __u32 end = find_cfa(other, scratch, rule);
  if (end != GO_ON) return end;
  __u64 cfa = walk->word, frame = walk->bp, caller;
  bool in_register = rule->return_register != DWELL_RETURN_AT_CFA;
  /* A frame may be empty only where the return address is in a register. */
  if (cfa < walk->sp || (cfa == walk->sp && !in_register)) return DWELL_WALK_BAD_STACK;
  if (in_register) {
    if (load_register(other, scratch, rule->return_register) != 0) return DWELL_WALK_REGISTER_LOST;
  } else if (load(other, scratch, cfa - 8) != 0) {
    return DWELL_WALK_FAULT;
  }
  caller = walk->word;
  if (restore(other, scratch, rule->frame_kind, rule->frame_offset, cfa, frame, &walk->bp,
              &walk->bp_load) != 0 ||
      restore(other, scratch, rule->rbx_kind, rule->rbx_offset, cfa, frame, &walk->bx,
              &walk->bx_load) != 0)
    return DWELL_WALK_FAULT;
  walk->ip = caller;
  walk->sp = cfa;
  walk->is_return = !(rule->flags & DWELL_RULE_EXACT_IP);
  walk->by_row++;
  return GO_ON;
}

/* From the frame in scratch->walk to its caller. GO_ON, or why there is none. */
static always_inline __u32 step(struct task_struct* other, struct scratch* scratch) {
  struct walk* walk = &scratch->walk;
  __u32 number = 0, end;
  __u64 address = walk->ip - walk->is_return;
  if (walk->mappings) {
    __u32 mapping = find_mapping(walk->first_mapping, walk->mappings, address);
    if (mapping != NO_INDEX)
      number = find_rule(mapping, address);
    else if (!walk->is_leaf)
      return DWELL_WALK_NO_MAPPING;
  }
  struct dwell_unwind_rule* rule = number ? bpf_map_lookup_elem(&unwind_rules, &number) : 0;
  end = rule ? follow_rule(other, scratch, rule) : follow_pointer(other, scratch);
  walk->is_leaf = 0;
  if (end != GO_ON) return end;
  if (walk->ip == 0) return end_at_zero(walk, walk->by_pointer - 1, DWELL_WALK_ROOT_ZERO);
  if (walk->ip < LOWEST_CODE || walk->ip > HIGHEST_CODE) return DWELL_WALK_BAD_IP;
  return GO_ON;
}

verified_once __u32 step_current(scratch_reference reference) {
  struct scratch* scratch = referred(reference);
  return scratch ? step(0, scratch) : DWELL_WALK_FAULT;
}

/* The process' tables, if there are any: none, and frame pointers are followed. */
static always_inline void find_tables(const struct dwell_process_key* process, struct walk* walk) {
  __u32 pid = process->pid;
  struct dwell_unwind_process* tables = bpf_map_lookup_elem(&unwind_processes, &pid);
  /* User space knows start times to the clock tick only. */
  if (!tables || process->start_boottime_ns - tables->start_boottime_ns >= 10000000) return;
  walk->first_mapping = tables->first_mapping;
  walk->mappings = tables->mappings;
  walk->version = tables->version;
  walk->python_layout = tables->python_layout;
  walk->python_runtime = tables->python_runtime;
}

/* Of the current task, from where begin_walk stands. Returns the hash of the stack. */
verified_once __u64 walk_current(scratch_reference reference) {
  struct scratch* scratch = referred(reference);
  if (!scratch) return 0;
  __u32 end = scratch->regs.cs == X86_USER32_CS ? DWELL_WALK_COMPAT : GO_ON;
  for (__u32 i = 0; i < DWELL_MAX_FRAMES && end == GO_ON; ++i) {
    end = step_current(reference);
    if (end == GO_ON) end = keep_frame(scratch);
  }
  return finish_walk(scratch, end);
}

#ifdef DWELL_RAW_TP /* never reads another task's stack */
static always_inline __u64 walk_other(struct task_struct* task, struct scratch* scratch) {
  return 0;
}
#else
struct other_walk {
  struct task_struct* task;
  struct scratch* scratch;
  __u32 end;
};

static long step_other(__u32 index, struct other_walk* walk) {
  walk->end = step(walk->task, walk->scratch);
  if (walk->end == GO_ON) walk->end = keep_frame(walk->scratch);
  return walk->end != GO_ON;
}

/* Of a sleeping thread, in a sleepable iterator. */
static always_inline __u64 walk_other(struct task_struct* task, struct scratch* scratch) {
  struct other_walk walk = {.task = task, .scratch = scratch, .end = DWELL_WALK_COMPAT};
  if (scratch->regs.cs != X86_USER32_CS) bpf_loop(DWELL_MAX_FRAMES, step_other, &walk, 0);
  return finish_walk(scratch, walk.end);
}
#endif

#endif
