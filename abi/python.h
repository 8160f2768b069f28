/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only) */
/*
 * How to get from CPython's `_PyRuntime` to the frames of a thread: what src/symbolize learns about
 * a build of the interpreter and bpf/python.h reads by (docs/stacks.md).
 *
 *   _PyRuntime -> interpreters -> their threads -> the thread's frames, leaf first -> code objects
 *
 * Writer: user space, a layout before the first process that refers to it. Layouts never change.
 */
#ifndef DWELL_ABI_PYTHON_H
#define DWELL_ABI_PYTHON_H

#include "abi/off_cpu.h"

enum {
  DWELL_PYTHON_LAYOUTS = 32,    /* different ones, from 1; most builds of a version share theirs */
  DWELL_PYTHON_FRAME_BYTES = 80 /* of an interpreter's frame, at most */
};

/* Offsets in bytes: CPython's names are in src/symbolize/python_layout.cc. */
struct dwell_python_layout {
  __dwell_u32 runtime_interpreters; /* of the first interpreter in _PyRuntime */
  __dwell_u32 interpreter_next;     /* in an interpreter */
  __dwell_u32 interpreter_threads;  /* ... of its first thread state */
  __dwell_u32 thread_next;          /* in a thread state */
  __dwell_u32 thread_native_id;     /* ... of what gettid() gave the thread */
  __dwell_u32 thread_frame;         /* ... of its leaf frame, or of what points to it */
  __dwell_u32 indirect_frame;       /* in that, or DWELL_PYTHON_DIRECT */
  __dwell_u32 code_instructions;    /* in a code object */
  __dwell_u8 frame_bytes;           /* of a frame that are read, at most DWELL_PYTHON_FRAME_BYTES */
  __dwell_u8 frame_code;            /* in a frame; multiples of 8 */
  __dwell_u8 frame_previous;
  __dwell_u8 frame_instruction;
  __dwell_u8 frame_entry;   /* in a frame, of a byte: */
  __dwell_u8 entry_min;     /* if at least this, the frame is the root of an eval call */
  __dwell_u8 entry_is_shim; /* ... and not one of the program, but its caller's end */
  __dwell_u8 zero;
};
enum { DWELL_PYTHON_DIRECT = 0xffffffff };

/*
 * A Python frame in one word: the address of its code object, the number of its instruction, and
 * whether it is the leaf of an eval call, the C function that runs the frames up to the next such.
 */
#define DWELL_PYTHON_CODE(word) ((word)&0xffffffffffffull)
#define DWELL_PYTHON_INSTRUCTION(word) ((__dwell_u32)((word) >> 48) & 0x7fff)
#define DWELL_PYTHON_BEGINS(word) ((word) >> 63)
enum { DWELL_PYTHON_NO_INSTRUCTION = 0x7fff }; /* too many to tell which */

DWELL_ASSERT(sizeof(struct dwell_python_layout) == 40);

#endif
