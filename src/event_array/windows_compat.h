// Perf event arrays in the manner of ebpf-for-windows over a UserEventMap, for programs and tests
// written for it: the map's definition holds the bytes of each ring, results are its result codes,
// the buffer calls its callbacks as its perf_buffer does.
//
// Differences that remain: a record has at most 65,516 bytes (theirs: 2^30), and 8 bytes of each
// ring stay free, because the ring is that of the Linux ABI.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <span>
#include <thread>

#include "event_array/async_query.h"
#include "event_array/event_session.h"
#include "event_array/user_event_array.h"
#include "event_array/user_event_map.h"

namespace dwell {
inline namespace v0 {
namespace windows {

// Their numbers, those that can occur here. Programs get them negated.
enum class Code : int {
  kSuccess = 0,
  kInvalidArgument = 6,
  kNoMemory = 12,
  kFailed = 17,
  kOperationNotSupported = 18,
  kPending = 28,
};

struct MapDefinition {
  uint32_t key_size = 0;     // must be 0
  uint32_t value_size = 0;   // must be 0
  uint32_t max_entries = 0;  // bytes of each CPU's ring: a power of two pages
};

class PerfEventArray {
 public:
  static std::expected<std::unique_ptr<PerfEventArray>, Code> create(
      const MapDefinition& definition);

  // The program's helper: 0 or a negated Code. An explicit index must be the current CPU.
  int output(uint64_t flags, std::span<const std::byte> data);
  // Bits 32 to 51 of `flags` append so many bytes of the context; `context` null: it has no data.
  int output_with_capture(const DataContext* context, uint64_t flags,
                          std::span<const std::byte> data);
  // From user mode: the current CPU's ring.
  Code write(std::span<const std::byte> data);

  // None is supported; wrong sizes are said first.
  Code update(size_t key_size, size_t value_size) const { return refuse(key_size, value_size); }
  Code find(size_t key_size, size_t value_size) const { return refuse(key_size, value_size); }
  Code erase(size_t key_size) const { return refuse(key_size, 0); }
  Code next_key(size_t key_size) const { return refuse(key_size, 0); }
  Code push(size_t value_size) const { return refuse(0, value_size); }
  Code pop(size_t value_size) const { return refuse(0, value_size); }
  Code peek(size_t value_size) const { return refuse(0, value_size); }

  // One outstanding query per ring. `index` is compared as 64 bits.
  Code async_query(uint64_t index, AsyncQueries::Done done);
  bool cancel(uint64_t index);
  Code query(uint64_t index, QueryAnswer& answer);
  // Everything before `consumer` has been read.
  Code return_buffer(uint64_t index, uint64_t consumer);

  UserEventMap& map() { return *map_; }

 private:
  explicit PerfEventArray(std::unique_ptr<UserEventMap> map) : map_(std::move(map)) {}
  static Code refuse(size_t key_size, size_t value_size);
  Code ensure_queries();

  std::unique_ptr<UserEventMap> map_;
  std::unique_ptr<UserEventArray> query_array_;
  std::unique_ptr<AsyncQueries> queries_;
};

// Their perf_buffer: callbacks for samples and losses, the loss first.
class PerfBuffer {
 public:
  using SampleCallback = std::function<void(uint32_t cpu, std::span<const std::byte> data)>;
  using LostCallback = std::function<void(uint32_t cpu, uint64_t lost)>;

  // Errors are errno numbers: EINVAL for a missing callback, page_count other than 0 or unknown
  // flags. kAutoCallback: a thread of its own calls back.
  static constexpr uint64_t kAutoCallback = 1;
  static std::expected<std::unique_ptr<PerfBuffer>, int> create(PerfEventArray& array,
                                                                size_t page_count,
                                                                SampleCallback sample,
                                                                LostCallback lost,
                                                                uint64_t flags = 0);
  ~PerfBuffer();

  // Number of records, or a negated errno; -ENOTSUP in auto mode.
  int poll(int timeout_ms);
  int consume();
  int consume_buffer(size_t index);
  size_t buffer_count() const { return array_->slots(); }
  // A descriptor that is readable when poll() has something to do; -1 in auto mode.
  int wait_handle();

 private:
  PerfBuffer(SampleCallback sample, LostCallback lost)
      : sample_(std::move(sample)), lost_(std::move(lost)) {}

  int drain_ring(uint32_t cpu);
  int drain();
  void run();

  UserEventMap* map_ = nullptr;
  std::unique_ptr<UserEventArray> array_;
  SampleCallback sample_;
  LostCallback lost_;
  std::vector<uint64_t> lost_before_;  // by CPU
  std::thread thread_;                 // auto mode
};

}  // namespace windows
}  // namespace v0
}  // namespace dwell
