// Single intervals of `record --timeline`, read from the probe's perf event array in order of time
// over all CPUs. Bounded: what goes beyond the limit is counted with its time and dropped; what the
// rings refuse, the probe counts (DWELL_LOSS_TIMELINE_RING). So every interval that was sent is in
// exactly one of three places.
// One thread: that of the recording loop.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "abi/off_cpu.h"
#include "base/result.h"
#include "event_array/event_session.h"
#include "event_array/kernel_event_array.h"

namespace dwell::collect {

struct TimelineLimits {
  uint64_t ring_bytes = 1 << 20;  // per CPU, rounded up: some 10,000 intervals
  uint64_t intervals = 1 << 20;   // kept
};

class Timeline {
 public:
  // Before the probe is attached: it must find the rings in their slots.
  static Result<std::unique_ptr<Timeline>> open(int map_fd, const TimelineLimits& limits);

  // Readable when a quarter of a ring has filled: to take earlier than planned.
  int fd() const { return array_->fd(); }
  // Takes what has come in; the newest are held back for their order.
  Status take();
  // Takes the rest. The probe must have closed the window.
  Status finish();

  // In the order in which they ended.
  const std::vector<dwell_interval_record>& intervals() const { return intervals_; }
  std::vector<dwell_interval_record> take_intervals() { return std::move(intervals_); }
  // Received, but beyond the limit.
  const dwell_counter_cell& dropped() const { return dropped_; }
  // Received in all, dropped ones included.
  const dwell_counter_cell& received() const { return received_; }
  SessionStats stats() const { return session_->stats(); }
  // What a reader of the recording should know.
  std::vector<std::string> notes() const;

 private:
  explicit Timeline(const TimelineLimits& limits) : limits_(limits) {}
  Verdict add(const Event& event);

  TimelineLimits limits_;
  std::unique_ptr<KernelEventArray> array_;
  std::unique_ptr<EventSession> session_;
  std::vector<dwell_interval_record> intervals_;
  dwell_counter_cell received_ = {};
  dwell_counter_cell dropped_ = {};
  uint64_t strange_ = 0;  // records that are no intervals
  uint32_t takes_ = 0;
};

}  // namespace dwell::collect
