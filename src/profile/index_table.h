// Finds the index of an equal element in a vector that its owner keeps: open addressing over
// 32-bit indexes, because the interned tables reach a million elements and a node per element
// (std::unordered_map) costs more than the elements.
//
// Invariant: at most half of the slots are in use, so a probe ends. Elements are never removed.
// Used where src/profile and src/export intern or group; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace dwell {

class IndexTable {
 public:
  void reserve(size_t elements) {
    size_t slots = kFirstSlots;
    while (slots < elements * 2) slots *= 2;
    if (slots > slots_.size()) rehash(slots);
  }

  // The index of an element that `equal(index)` accepts among those with this hash; if there is
  // none, remembers `next` for it and returns `next`: the caller then appends the element.
  template <typename Equal>
  uint32_t find_or_insert(uint64_t hash, uint32_t next, const Equal& equal) {
    if ((size_ + 1) * 2 > slots_.size())
      rehash(slots_.empty() ? size_t{kFirstSlots} : slots_.size() * 2);
    const auto short_hash = static_cast<uint32_t>(hash ^ (hash >> 32));
    for (size_t i = short_hash & (slots_.size() - 1);; i = (i + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[i];
      if (slot.index == kFree) {
        slot = {short_hash, next};
        ++size_;
        return next;
      }
      if (slot.hash == short_hash && equal(slot.index)) return slot.index;
    }
  }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  static constexpr size_t kFirstSlots = 64;  // a power of two, as every later size
  struct Slot {
    uint32_t hash = 0;
    uint32_t index = kFree;
  };

  void rehash(size_t slots) {
    std::vector<Slot> old(slots);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.index == kFree) continue;
      size_t i = slot.hash & (slots - 1);
      while (slots_[i].index != kFree) i = (i + 1) & (slots - 1);
      slots_[i] = slot;
    }
  }

  std::vector<Slot> slots_;
  size_t size_ = 0;
};

}  // namespace dwell
