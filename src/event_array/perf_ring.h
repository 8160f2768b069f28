// One perf event with its ring: opens, maps, enables, reads the exact loss, pauses. Used for the
// slots of a KernelEventArray, and for any other software event whose records somebody wants.
// Not thread-safe; invalid in a forked child.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "base/result.h"
#include "event_array/event_ring.h"
#include "event_array/mapping.h"
#include "event_array/perf_kernel.h"
#include "event_array/ring_sizes.h"
#include "ring/ring_reader.h"

namespace dwell {
inline namespace v0 {

struct PerfRingOptions {
  uint64_t data_bytes = kDefaultRingBytes;  // a power of two pages
  Wakeup wakeup{.watermark_bytes = 64 << 10};
  bool backward = false;    // overwrite the oldest; read by snapshot
  bool timestamps = false;  // TID, TIME (CLOCK_MONOTONIC) and CPU, in every record
  pid_t tid = -1;           // one thread only; -1: all
};

// The attributes of an event that receives bpf_perf_event_output.
perf_event_attr bpf_output_attr(const PerfRingOptions& options);

class PerfRing final : public EventRing {
 public:
  // A BPF output event on `cpu`, enabled.
  static Result<std::unique_ptr<PerfRing>> open(PerfKernel& kernel, uint32_t cpu,
                                                const PerfRingOptions& options);
  // Any event, with its ring; `attr` decides. Not enabled if attr.disabled.
  static Result<std::unique_ptr<PerfRing>> open(PerfKernel& kernel, int cpu, pid_t tid,
                                                perf_event_attr attr, uint64_t data_bytes);

  RingReader& reader() override { return *reader_; }
  RecordFormat format() const override { return format_; }
  std::optional<uint64_t> exact_lost() override;
  Status pause(bool paused) override;
  Status snapshot(const SnapshotSink& sink) override;
  bool backward() const override { return backward_ != nullptr; }
  int fd() const override { return event_.get(); }
  uint64_t data_bytes() const { return data_bytes_; }
  // Nothing if the event is on. One whose CPU went offline and came back is off.
  Status enable();

 private:
  PerfRing() = default;
  Status map(uint64_t data_bytes, bool backward);

  Fd event_;
  Mapping mapping_;
  uint64_t data_bytes_ = 0;
  bool exact_loss_ = false;  // the kernel has PERF_FORMAT_LOST
  RecordFormat format_;
  std::optional<RingReader> reader_;
  std::unique_ptr<BackwardReader> backward_;
};

}  // namespace v0
}  // namespace dwell
