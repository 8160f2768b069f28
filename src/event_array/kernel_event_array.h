// Reads a BPF perf event array: one perf ring per online CPU, put into the map's slots.
//
// Opening takes the slots over. The kernel does not tell what a slot held before, so that a second
// reader of the same map silences the first, unseen by both; use a map of your own.
// What loss counts do not contain: outputs that failed with -ENOENT (no ring), -EOPNOTSUPP (wrong
// CPU), -E2BIG, -EINVAL, -EFAULT, -EBUSY. Only the BPF program sees those.
// A payload above 65,516 bytes makes the kernel report success and damage the ring; the reader
// survives it (RingStats::corrupt, SampleCheck::kOversize).
#pragma once

#include <sys/epoll.h>

#include <memory>
#include <string>
#include <vector>

#include "event_array/bpf_map.h"
#include "event_array/event_array.h"
#include "event_array/perf_kernel.h"
#include "event_array/perf_ring.h"
#include "event_array/ring_sizes.h"

namespace dwell {
inline namespace v0 {

struct KernelEventArrayOptions {
  RingSizeRequest size{};
  WakeupRequest wakeup{};
  WaitOptions wait{};
  bool shrink_to_fit = false;    // smaller rings rather than an error when memory is refused
  bool timestamps = false;       // TID, TIME and CPU in every record: for ordered delivery
  bool overwrite = false;        // backward rings: nothing to drain, snapshot() instead
  pid_t tid = -1;                // outputs of this thread only; others get -EOPNOTSUPP
  uint64_t max_payload = 0;      // largest payload of the program, 0 if unknown: checked at opening
  std::vector<uint32_t> cpus{};  // these only; empty: all that are online
  PerfKernel* kernel = nullptr;  // null: the real one
};

// What opening came to.
struct ArrayReport {
  uint64_t ring_bytes = 0;  // per CPU, after rounding and shrinking
  Wakeup wakeup;
  std::vector<uint32_t> uncovered;  // online CPUs beyond max_entries: their outputs get -E2BIG
  std::vector<uint32_t> offline;    // went offline while opening; opened when they return
  uint32_t spare_slots = 0;         // slots without an online CPU
  std::vector<std::string> warnings;
};

class KernelEventArray final : public EventArray {
 public:
  // Works on a descriptor of its own: `map_fd` may be closed afterwards.
  static Result<std::unique_ptr<KernelEventArray>> open(
      int map_fd, const KernelEventArrayOptions& options = {});
  static Result<std::unique_ptr<KernelEventArray>> open_pinned(
      const std::string& path, const KernelEventArrayOptions& options = {});
  static Result<std::unique_ptr<KernelEventArray>> open_id(
      uint32_t map_id, const KernelEventArrayOptions& options = {});

  ~KernelEventArray() override;

  const ArrayReport& report() const { return report_; }
  int fd() const override { return epoll_.get(); }
  const BpfMapInfo& map() const { return map_; }

  // Empties the slots and waits for the programs that run: afterwards none writes, they get
  // -ENOENT, and what is in the rings can be drained to the last record. (With nohz_full CPUs the
  // kernel does not let us wait: a program that runs at that moment may add one record.)
  Status detach();

  // Overwriting arrays: puts a fresh ring into the slot and reads the old one, so that no output is
  // refused meanwhile. Newest record first.
  Status swap_snapshot(uint32_t cpu, const SnapshotSink& sink);

 private:
  KernelEventArray(Fd map_fd, const BpfMapInfo& map, const KernelEventArrayOptions& options);

  Status start();
  Status open_all();
  Status plan_cpus();
  Status plan_sizes(uint64_t ring_bytes);
  Status open_ring(uint32_t cpu);
  Status watch(uint32_t cpu, int event_fd);
  Status sleep(std::chrono::nanoseconds timeout) override;
  Status release_slots() override;
  Status rescan() override;
  bool wants(uint32_t cpu) const;
  void revive(uint32_t cpu);

  Fd map_fd_;
  BpfMapInfo map_;
  KernelEventArrayOptions options_;
  PerfKernel& kernel_;
  std::unique_ptr<std::atomic<bool>[]> filled_;  // slots that hold a ring of ours
  PerfRingOptions ring_options_;
  ArrayReport report_;
  Fd epoll_;
  std::mutex rescan_mutex_;       // guards online_
  std::vector<uint32_t> online_;  // CPUs that the last scan found
};

}  // namespace v0
}  // namespace dwell
