// The sums of a recording: rows of all epochs merged by key, every thread's record, every stack.
// Bounded: what does not fit any more goes into the overflow row of its class and is counted.
#pragma once

#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "abi/off_cpu.h"
#include "collect/drain.h"

namespace dwell::collect {

struct RowKeyHash {
  size_t operator()(const dwell_row_key& key) const;
};
struct RowKeyEqual {
  bool operator()(const dwell_row_key& a, const dwell_row_key& b) const {
    return std::memcmp(&a, &b, sizeof a) == 0;
  }
};

struct TotalsLimits {
  size_t rows = 4 << 20;
  size_t threads = 1 << 20;
};

class Totals {
 public:
  explicit Totals(TotalsLimits limits = {}) : limits_(limits) {}

  void add_rows(const std::vector<RawRow>& rows);
  void add_threads(const std::vector<dwell_thread_record>& records);
  void add_overflow(const std::vector<dwell_row>& by_class);
  void add_lost_threads(const dwell_lost_threads& lost);

  using Rows = std::unordered_map<dwell_row_key, dwell_row, RowKeyHash, RowKeyEqual>;
  const Rows& rows() const { return rows_; }
  const std::unordered_map<uint64_t, dwell_thread_record>& threads() const { return threads_; }
  const std::vector<dwell_row>& overflow() const { return overflow_; }  // by class
  const dwell_lost_threads& lost_threads() const { return lost_threads_; }
  // What did not fit here: intervals, which are part of the overflow rows, and threads, which are
  // part of the lost ones. The probe's own counters know nothing of them.
  const dwell_counter_cell& dropped_rows() const { return dropped_rows_; }
  const dwell_counter_cell& dropped_threads() const { return dropped_threads_; }

 private:
  TotalsLimits limits_;
  Rows rows_;
  std::unordered_map<uint64_t, dwell_thread_record> threads_;
  std::vector<dwell_row> overflow_ = std::vector<dwell_row>(DWELL_CLASS_COUNT);
  dwell_lost_threads lost_threads_ = {};
  dwell_counter_cell dropped_rows_ = {};
  dwell_counter_cell dropped_threads_ = {};
};

}  // namespace dwell::collect
