// Takes out of the probe's maps and rings what has come in since the last call. The recording loop
// calls `drain` every 50 ms or so; the rings are sized for that. Rows are taken an epoch at a time:
// the probe writes to one row map while the other is emptied, so no value is read half written.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "abi/off_cpu.h"
#include "base/result.h"
#include "probe/probe.h"

namespace dwell::collect {

struct RawRow {
  dwell_row_key key;
  dwell_row value;
};

// A stack at its first sight. The spans live until the next call of drain.
struct RawStack {
  uint64_t hash = 0;
  dwell_process_key process = {};
  uint64_t first_seen_ns = 0;
  uint16_t flags = 0;
  std::vector<uint64_t> ips;                               // leaf first
  uint16_t end = 0;                                        // user: enum dwell_walk_end
  std::array<uint64_t, DWELL_STEP_WORDS> pointer_steps{};  // as in dwell_stack_record
};

struct Batch {
  std::vector<RawStack> stacks;
  std::vector<dwell_thread_record> threads;
  std::vector<dwell_kernel_stack_sample> samples;
  std::vector<RawRow> rows;  // empty unless the epoch was swapped
};

class Drain {
 public:
  static Result<Drain> create(const probe::ProbeMaps& maps);
  Drain(Drain&&) noexcept;
  Drain& operator=(Drain&&) noexcept;
  ~Drain();

  // Takes what is in the rings, at most as much as they hold; appends to `batch`.
  Status take_rings(Batch& batch);
  // Whether the last call took all that a ring holds, so that more may have come meanwhile.
  bool wants_another_turn() const;
  // Swaps the epoch, then empties the row map that was in use. The kernel waits for running
  // handlers in between.
  Status take_rows(Batch& batch);
  // Rows begun since the probe was loaded, over all epochs: tells how full the map in use is.
  Result<uint64_t> rows_inserted() const;
  Result<std::vector<dwell_counter_cell>> read_counters() const;
  Result<std::vector<dwell_row>> read_overflow() const;  // by class
  Result<dwell_lost_threads> read_lost_threads() const;

 private:
  struct Impl;
  explicit Drain(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dwell::collect
