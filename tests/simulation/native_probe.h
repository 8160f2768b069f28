// Dwell's probe, compiled natively, on a pretended machine: its tracepoints, its iterators, and
// what comes out of its maps and rings. Plays the part of src/probe and of src/collect's Drain.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "abi/off_cpu.h"
#include "runtime/hash_map.h"
#include "runtime/machine.h"
#include "runtime/object.h"

namespace dwell::simulation {

struct ProbeLimits {
  bool raw = false;         // the build for raw tracepoints
  uint32_t rows = 1 << 20;  // per epoch
  uint32_t stacks = 1 << 17;
  uint32_t stack_ring_bytes = 1 << 24;
  uint32_t thread_ring_bytes = 16 << 20;
  uint64_t states = ~uint64_t{0};
  uint32_t renames_max = 16;
  uint64_t min_ns = 0;
};

// What a thread's rows add up to.
struct RowSums {
  uint64_t blocked_ns = 0;
  uint64_t run_queue_ns = 0;
  uint64_t count = 0;
  uint64_t blocked_count = 0;
};

// Everything that the probe told.
struct Told {
  // One per life: of two, as collect::Totals does, the one with more in its books.
  std::vector<dwell_thread_record> records;
  std::unordered_map<uint64_t, size_t> record_of;  // by record.thread
  std::unordered_map<uint64_t, RowSums> rows;      // by record.thread
  RowSums by_class[DWELL_CLASS_COUNT];             // rows and overflow
  RowSums overflow;
  std::unordered_map<uint64_t, std::vector<uint64_t>> stacks;  // by hash
  // Intervals by user and kernel stack, of blocked classes; kept only if asked for.
  bool keep_stacks = false;
  std::unordered_map<uint64_t, uint64_t> user_stack_counts, kernel_stack_counts;
  dwell_lost_threads lost_threads = {};
  dwell_counter_cell counters[DWELL_COUNTER_COUNT] = {};
  uint64_t drains = 0;

  void add_record(const dwell_thread_record& record);
};

class NativeProbe {
 public:
  static Result<std::unique_ptr<NativeProbe>> load(runtime::Machine& machine,
                                                   const ProbeLimits& limits);

  // Tracepoints, with the arguments the kernel passes.
  void sched_switch(uint32_t cpu, bool preempt, runtime::Task& prev, runtime::Task& next,
                    uint32_t prev_state);
  void sched_waking(uint32_t cpu, runtime::Task& task);
  void task_newtask(uint32_t cpu, runtime::Task& task);
  void sched_wakeup_new(uint32_t cpu, runtime::Task& task);
  void sched_process_exec(uint32_t cpu, runtime::Task& task);
  void task_rename(uint32_t cpu, runtime::Task& task, const char* name);

  // Iterators over `tasks`, run on `cpu`.
  void prepare(uint32_t cpu, std::span<runtime::Task* const> tasks);
  void seed(uint32_t cpu, std::span<runtime::Task* const> tasks, bool with_stacks);
  void close_window(uint32_t cpu, std::span<runtime::Task* const> tasks, Told& told);
  uint32_t unprepared();

  void set_start(uint64_t ns) { window().start_ns = ns; }
  void set_end(uint64_t ns) { window().end_ns = ns; }

  // Rings; and, swapping the epoch, rows.
  void take_rings(Told& told);
  void take_rows(Told& told);
  void take_sums(Told& told);  // once, at the end: counters, overflow, lost threads

  uint64_t recursion_misses() const;
  uint64_t rows_in_use() const { return rows_[current_]->size(); }

 private:
  NativeProbe(runtime::Machine& machine, std::unique_ptr<runtime::Object> object);

  volatile dwell_window& window() { return object_->variable<dwell_window>("window"); }
  void iterate(runtime::Program& program, uint32_t cpu, std::span<runtime::Task* const> tasks,
               const std::function<void(std::span<const std::byte>)>& take);

  runtime::Machine& machine_;
  std::unique_ptr<runtime::Object> object_;
  std::unique_ptr<runtime::Map> row_maps_[2];
  runtime::HashMap* rows_[2] = {};
  int current_ = 0;
  runtime::Program& switch_;
  runtime::Program& waking_;
  runtime::Program& newtask_;
  runtime::Program& wakeup_new_;
  runtime::Program& exec_;
  runtime::Program& rename_;
};

}  // namespace dwell::simulation
