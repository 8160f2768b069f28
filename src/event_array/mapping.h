// A piece of mapped memory that knows who mapped it. Never unmapped by a forked child: perf
// mappings do not reach the child, so that something else may lie at the address there.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace dwell {
inline namespace v0 {

class Mapping {
 public:
  Mapping() = default;
  // Takes over [address, address + size).
  Mapping(void* address, uint64_t size);
  Mapping(Mapping&& other) noexcept { swap(other); }
  Mapping& operator=(Mapping&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Mapping();

  std::byte* data() const { return static_cast<std::byte*>(address_); }
  uint64_t size() const { return size_; }
  explicit operator bool() const { return address_ != nullptr; }

 private:
  void swap(Mapping& other) {
    std::swap(address_, other.address_);
    std::swap(size_, other.size_);
    std::swap(owner_, other.owner_);
  }

  void* address_ = nullptr;
  uint64_t size_ = 0;
  pid_t owner_ = 0;
};

}  // namespace v0
}  // namespace dwell
