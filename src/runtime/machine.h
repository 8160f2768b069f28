// The pretended machine that programs run on: CPUs, a clock that stands until it is set, tasks, and
// what the kernel's memory holds. Nothing here moves by itself; whoever simulates moves it.
//
// A CPU belongs to one thread of the host at a time; different CPUs may run at once. Clock, memory
// and tasks are changed only while no program runs, or from the interrupt hook.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "runtime/task.h"

namespace dwell::runtime {

class Program;

inline constexpr uint32_t kMaxCpus = 8192;
inline constexpr size_t kMaxTraceLines = 4096;

// Places where the kernel could be interrupted. The hook may run other programs on the same CPU,
// as an interrupt would, or on others, as time passing would.
enum class InterruptPoint {
  kCall,           // between two instructions: before any call of the program
  kInsideOutput,   // bpf_perf_event_output is at work
  kInsideUpdate,   // a hash map's bucket is locked by this CPU
  kInsideStorage,  // task-local storage is being made
};

struct Interrupted {
  InterruptPoint point;
  uint32_t cpu;
  const Program* program;
};

struct Cpu {
  uint32_t id = 0;
  Task* current = nullptr;
  int64_t clock_offset_ns = 0;  // how far this CPU's clock is ahead of the machine's
  // Nesting, as the kernel counts it; see program.h and calls_output.cc.
  uint32_t perf_programs = 0;
  uint32_t tracing_outputs = 0;
  uint32_t data_outputs = 0;
  uint32_t storage_busy = 0;
  uint64_t random = 0;
};

class Machine {
 public:
  explicit Machine(uint32_t cpus = 1);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  uint32_t cpu_count() const { return static_cast<uint32_t>(cpus_.size()); }
  Cpu& cpu(uint32_t id) { return cpus_[id]; }

  // CLOCK_MONOTONIC, and what CLOCK_BOOTTIME is ahead of it.
  void set_clock(uint64_t ns) { clock_ns_.store(ns, std::memory_order_relaxed); }
  uint64_t clock() const { return clock_ns_.load(std::memory_order_relaxed); }
  uint64_t clock(const Cpu& cpu) const {
    return clock() + static_cast<uint64_t>(cpu.clock_offset_ns);
  }
  void set_boot_offset(uint64_t ns) { boot_offset_ns_ = ns; }
  uint64_t boot_offset() const { return boot_offset_ns_; }

  // A task whose kernel struct has so many bytes, all zero. Lives until freed; its storage with it.
  Task& create_task(size_t kernel_struct_bytes);
  void free_task(Task& task);

  void set_kernel_memory(const Memory* memory) { kernel_memory_ = memory; }  // borrowed
  const Memory* kernel_memory() const { return kernel_memory_; }

  // What this kernel does not have, by the text in the program's bpf_core_..._exists().
  void set_missing(std::unordered_set<std::string> what) { missing_ = std::move(what); }
  bool is_missing(const char* what) const { return !missing_.empty() && missing_.contains(what); }

  // Called at each InterruptPoint, also from within itself. Empty: none.
  void set_interrupt_hook(std::function<void(const Interrupted&)> hook) { hook_ = std::move(hook); }
  void interrupt(InterruptPoint point, uint32_t cpu, const Program* program) {
    if (hook_) [[unlikely]]
      hook_({point, cpu, program});
  }

  // What bpf_printk wrote; the oldest lines go first.
  void trace(std::string line);
  std::vector<std::string> take_trace();

 private:
  std::vector<Cpu> cpus_;
  std::atomic<uint64_t> clock_ns_ = 0;
  uint64_t boot_offset_ns_ = 0;
  const Memory* kernel_memory_ = nullptr;
  std::unordered_set<std::string> missing_;
  std::function<void(const Interrupted&)> hook_;
  std::mutex trace_mutex_;
  std::deque<std::string> trace_;
  std::mutex tasks_mutex_;
  std::unordered_set<Task*> tasks_;
};

}  // namespace dwell::runtime
