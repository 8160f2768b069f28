// Places for the elements of a map: equal in size, at addresses that never change, made zero when
// first touched. With AddressSanitizer each is followed by bytes that nobody may touch, so that a
// program that writes past its value is caught.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace dwell::runtime {

class ElementStore {
 public:
  ElementStore(uint64_t count, size_t element_bytes);
  ~ElementStore();
  ElementStore(const ElementStore&) = delete;
  ElementStore& operator=(const ElementStore&) = delete;

  // index < count.
  std::byte* at(uint64_t index) {
    std::byte* chunk = chunks_[index >> shift_].load(std::memory_order_acquire);
    if (chunk == nullptr) [[unlikely]]
      chunk = make_chunk(index >> shift_);
    return chunk + (index & ((uint64_t{1} << shift_) - 1)) * stride_;
  }
  uint64_t count() const { return count_; }

 private:
  std::byte* make_chunk(uint64_t chunk);

  uint64_t count_;
  size_t element_bytes_;
  size_t stride_;
  uint32_t shift_;  // log2 of the elements in a chunk
  std::vector<std::atomic<std::byte*>> chunks_;
};

}  // namespace dwell::runtime
