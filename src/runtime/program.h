// A program of a natively compiled object. It runs to its end in the calling thread, on the CPU
// that the caller names. It may be interrupted by others on the same CPU (Machine's hook); whether
// a nested program runs is decided as the kernel decides:
//   - kprobes, uprobes, tracepoints, perf events: not while another of these runs on the CPU
//   - raw and typed tracepoints, fentry, fexit: not while the same program runs on the CPU
//   - others: always
// A program that did not run is counted, as the kernel's recursion misses are.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/frame.h"
#include "runtime/native_object.h"

namespace dwell::runtime {

class Packet;

struct RunResult {
  bool ran = false;
  int value = 0;  // what the program returned
};

class Program {
 public:
  Program(const dwell_native_program& native, Machine& machine);

  // `context` is what the program gets: an array of words, registers, an iterator's struct.
  RunResult run(uint32_t cpu, void* context);
  // With a packet as its context.
  RunResult run(uint32_t cpu, Packet& packet);

  const std::string& name() const { return name_; }
  const std::string& section() const { return section_; }
  ProgramKind kind() const { return kind_; }
  uint64_t recursion_misses() const { return misses_.load(std::memory_order_relaxed); }

  // For bpf_tail_call: in the caller's frame.
  int run_in_frame(void* context) const { return run_(context); }

 private:
  RunResult run(uint32_t cpu, void* context, const DataContext* data);
  bool enter(Cpu& cpu);
  void leave(Cpu& cpu);

  std::string name_;
  std::string section_;
  ProgramKind kind_;
  int (*run_)(void*);
  Machine& machine_;
  std::vector<uint8_t> active_;  // by CPU
  std::atomic<uint64_t> misses_ = 0;
};

ProgramKind kind_of_section(std::string_view section);

}  // namespace dwell::runtime
