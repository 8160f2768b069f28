// Hash and per-CPU hash maps. Elements come from a store with as many places as the map may have
// entries (and some more, since an update of an existing key puts a new element in place of the
// old one). Lookups take the bucket's lock for the walk only.
//
// As in the kernel a CPU that is interrupted while it has a bucket locked refuses updates and
// deletes of the same group of buckets with -EBUSY; lookups go ahead.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <vector>

#include "runtime/element_store.h"
#include "runtime/map.h"
#include "runtime/spin_lock.h"

namespace dwell::runtime {

class HashMap final : public Map {
 public:
  HashMap(MapDefinition definition, Machine& machine, bool per_cpu);

  void* lookup(Cpu& cpu, const void* key) override;
  long update(Cpu& cpu, const void* key, const void* value, uint64_t flags) override;
  long erase(Cpu& cpu, const void* key) override;
  int read(const void* key, void* value) override;
  int write(const void* key, const void* value, uint64_t flags) override;
  int erase(const void* key) override;
  int next_key(const void* key, void* next) override;

  // Calls `take(key, value)` for every element and deletes it: a drain. Elements that come in
  // meanwhile may or may not be among them.
  void take_all(const std::function<void(const void* key, const void* value)>& take);
  uint64_t size() const { return used_.load(std::memory_order_relaxed); }

 private:
  struct Element {
    uint32_t next;  // index + 1, 0: the last
    uint32_t live;
    uint64_t hash;  // tells which lock guards the element; loaded without
    std::byte* key() { return reinterpret_cast<std::byte*>(this + 1); }
  };
  static constexpr uint32_t kLockGroups = 64;
  static constexpr uint32_t kBusyGroups = 8;  // the kernel's HASHTAB_MAP_LOCK_COUNT

  uint64_t hash_of(const void* key) const;
  Element& element(uint32_t index) { return *reinterpret_cast<Element*>(store_.at(index)); }
  std::byte* value_of(Element& e) { return e.key() + round_up_8(definition().key_bytes); }
  SpinLock& lock_of(uint64_t hash) { return locks_[hash & (kLockGroups - 1)]; }
  std::atomic<uint32_t>& bucket_of(uint64_t hash) { return buckets_[hash & (buckets_.size() - 1)]; }
  uint32_t find(const void* key, uint64_t hash);  // index + 1, under the lock
  uint32_t allocate();                            // index + 1, 0 if the map is full
  void release(uint32_t index);
  // `whole`: `value` has the values of all CPUs.
  int put(uint32_t cpu, const void* key, const void* value, uint64_t flags, bool whole);
  int remove(const void* key);
  void fill(Element& e, uint32_t cpu, const void* value, bool whole, bool fresh);
  void link(Element& e, uint32_t index, uint64_t hash);
  void unlink(uint32_t index, uint64_t hash);
  bool enter(Cpu& cpu, uint64_t hash);
  void leave(Cpu& cpu, uint64_t hash);

  Machine& machine_;
  bool per_cpu_;
  uint32_t cpus_;
  size_t value_stride_;
  std::vector<std::atomic<uint32_t>> buckets_;
  ElementStore store_;
  std::array<SpinLock, kLockGroups> locks_;
  SpinLock free_lock_;
  std::vector<uint32_t> free_;
  uint32_t fresh_ = 0;  // places from here on were never used
  std::atomic<uint64_t> used_ = 0;
  std::vector<std::array<uint8_t, kBusyGroups>> busy_;  // by CPU
};

}  // namespace dwell::runtime
