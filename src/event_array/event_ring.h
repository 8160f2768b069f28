// One slot's ring, of either array: what differs between a kernel perf ring and one of ours.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "base/result.h"
#include "ring/backward_reader.h"
#include "ring/record.h"
#include "ring/ring_reader.h"

namespace dwell {
inline namespace v0 {

// Returns false to stop.
using SnapshotSink = std::function<bool(const Record&)>;

class EventRing {
 public:
  virtual ~EventRing() = default;

  // Forward rings only.
  virtual RingReader& reader() = 0;
  virtual RecordFormat format() const = 0;
  // Outputs refused for want of space since the ring exists; none where it cannot be told.
  virtual std::optional<uint64_t> exact_lost() = 0;
  // While paused, outputs are refused and counted as lost.
  virtual Status pause(bool paused) = 0;
  // Backward rings only: the records that the ring holds now, newest first.
  virtual Status snapshot(const SnapshotSink& sink) = 0;
  virtual bool backward() const = 0;
  // Descriptor to wait on, -1 if the array has one for all rings.
  virtual int fd() const = 0;
};

}  // namespace v0
}  // namespace dwell
