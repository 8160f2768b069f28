// One program at work: what the calls find when they ask who runs where. Frames of nested programs
// form a stack per host thread. Private to src/runtime.
#pragma once

#include <csetjmp>
#include <cstdint>

#include "event_array/user_event_map.h"
#include "runtime/machine.h"

namespace dwell::runtime {

class Program;

// How a program may nest (program.h), and what its context is to perf event output.
enum class ProgramKind {
  kPerf,      // kprobes, uprobes, tracepoints, perf events
  kTraced,    // raw and typed tracepoints, fentry, fexit
  kData,      // XDP, socket and traffic-control programs: contexts with data
  kUnguarded  // iterators and what else is run by a system call
};

struct Frame {
  Machine& machine;
  Cpu& cpu;
  const Program* program;
  ProgramKind kind;
  const DataContext* data;  // kData: the packet
  Frame* outer;
  uint32_t tail_calls = 0;
  std::jmp_buf* unwind = nullptr;  // where a tail call leaves the program
  int tail_result = 0;
};

// Aborts if no program runs on this thread: a call was made from outside.
Frame& frame();
Frame* frame_or_null();
void push_frame(Frame& frame);
void pop_frame();
const Program* running_program();  // null: none

// Before each call of a program.
inline Frame& enter_call() {
  Frame& f = frame();
  f.machine.interrupt(InterruptPoint::kCall, f.cpu.id, f.program);
  return f;
}

}  // namespace dwell::runtime
