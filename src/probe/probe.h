// The off-CPU probe: loads it, attaches it, opens and closes its window. The only class that sees
// the BPF skeleton. What the probe writes is drained by src/collect through the descriptors in
// ProbeMaps.
//
//   load -> add targets -> attach -> open_window -> ... -> close_window -> (destroy: detaches)
//
// One thread owns it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "abi/off_cpu.h"
#include "base/result.h"
#include "probe/targets.h"

namespace dwell::probe {

struct ProbeOptions {
  bool all = false;    // the whole machine; else the targets given
  bool follow = true;  // children of target processes too
  bool user_threads = true;
  bool kernel_threads = false;
  bool user_stacks = true;
  bool kernel_stacks = true;
  bool runnable_kernel_stacks = false;  // of preempted threads as well
  uint32_t class_mask = ~0u;            // bit per dwell_class
  uint32_t state_mask = 0;              // 0: any; else bits of the raw state, bit 31 for running
  uint64_t min_ns = 0;                  // whole intervals
  uint64_t max_ns = ~uint64_t{0};
  uint32_t verify_every =
      64;  // power of two: one in so many kernel stacks found by signature is walked too
  uint32_t renames_max = 16;  // after so many a thread keeps its name
  uint32_t rows = 1 << 18;    // entries per epoch
  uint32_t stacks = 1 << 19;  // distinct stacks
  uint32_t stack_ring_bytes = 16 << 20;
  uint32_t thread_ring_bytes = 4 << 20;
  // Unwind tables (docs/stacks.md); 0 rows: user stacks follow frame pointers alone.
  uint32_t unwind_rows = 32 << 20;
  uint32_t unwind_pages = 1 << 17;
  uint32_t unwind_mappings = 1 << 16;
  uint32_t unwind_processes = 1 << 14;
  bool signatures = true;
  // Single intervals of at least this through ProbeMaps::timeline; none: that map is not created
  // and no code of it is loaded.
  std::optional<uint64_t> timeline_min_ns{};
  bool raw = false;               // raw tracepoints even where typed ones work
  uint64_t sched_text_start = 0;  // addresses of the scheduler's code, 0 if the kernel hides them
  uint64_t sched_text_end = 0;
};

// Borrowed descriptors, valid as long as the probe.
struct ProbeMaps {
  int epoch = -1;  // array of one: the row map in use
  int rows[2] = {-1, -1};
  int overflow = -1;
  int counters = -1;
  int lost_threads = -1;
  int stacks = -1;  // rings
  int threads = -1;
  int samples = -1;
  int signatures = -1;
  int timeline = -1;  // perf event array; -1 without a timeline
  // Of bpf/unwind_tables.h; -1 where the build has none.
  int unwind_processes = -1;
  int unwind_mappings = -1;
  int unwind_pages = -1;
  int unwind_rules = -1;
  int unwind_slabs = -1;
  int python_layouts = -1;  // of bpf/python.h
  int python_stacks = -1;   // ring, readable when it has something
};

class Probe {
 public:
  static Result<Probe> load(const ProbeOptions& options);
  Probe(Probe&&) noexcept;
  Probe& operator=(Probe&&) noexcept;
  ~Probe();

  Status add_target(const Target& target);
  Status attach();

  // Sets the start of the window a little ahead of the clock and seeds the threads that have no
  // event yet. Returns the start, CLOCK_MONOTONIC ns.
  Result<uint64_t> open_window();
  // Takes the user stacks of sleeping threads again whose walk was cut short: tables have come into
  // force since. Does nothing on kernels before 5.18.
  Status rewalk_stacks();
  // Sets its end, waits for it, and closes what is open. Returns a record for every target that is
  // still alive.
  Result<std::vector<dwell_thread_record>> close_window();

  // Bytes of the kernel's memory; empty if it cannot be read. After load.
  std::vector<uint8_t> read_kernel(uint64_t address, size_t bytes);

  const ProbeMaps& maps() const;
  uint64_t window_start_ns() const;
  uint64_t window_end_ns() const;
  uint64_t kernel_memory_bytes() const;    // of all maps, by the kernel's own account
  std::vector<std::string> notes() const;  // what this kernel could not do, for the report

 private:
  struct Impl;
  explicit Probe(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dwell::probe
