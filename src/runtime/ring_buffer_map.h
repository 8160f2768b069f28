// BPF ring buffer: many producers, one consumer, records in the order of their reservation. The
// data area is mapped twice in a row, so that each record is in one piece. A record that is
// reserved and not yet submitted holds back those behind it, as in the kernel.
#pragma once

#include <atomic>
#include <functional>
#include <span>

#include "event_array/mapping.h"
#include "runtime/map.h"
#include "runtime/spin_lock.h"

namespace dwell::runtime {

class RingBufferMap final : public Map {
 public:
  // max_entries is the size in bytes: a power of two, whole pages.
  static Result<std::unique_ptr<RingBufferMap>> create(MapDefinition definition);

  // For programs.
  void* reserve(uint64_t bytes);  // null: full or too large
  static void finish(void* record, bool keep, uint64_t flags);
  long output(const void* data, uint64_t bytes, uint64_t flags);
  uint64_t query(uint64_t what) const;

  // For user space, one thread at a time: gives the records that are complete; returns how many.
  uint64_t consume(const std::function<void(std::span<const std::byte>)>& take);
  uint64_t wakeups() const { return wakeups_.load(std::memory_order_relaxed); }

 private:
  struct Header {
    uint32_t length;  // with two flags
    uint32_t pages;   // from the start of the mapping, where `this` is
  };

  RingBufferMap(MapDefinition definition, Mapping mapping, uint64_t page_bytes);
  Header* header_at(uint64_t position);
  static RingBufferMap& owner_of(const Header* header);

  Mapping mapping_;  // a page that names the owner, data, data again
  uint64_t page_bytes_;
  std::byte* data_;
  uint64_t mask_;
  SpinLock lock_;
  std::atomic<uint64_t> produced_ = 0;
  std::atomic<uint64_t> consumed_ = 0;
  std::atomic<uint64_t> wakeups_ = 0;
};

}  // namespace dwell::runtime
