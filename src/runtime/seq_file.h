// What an iterator program writes into (bpf_seq_write): bounded, as the kernel's page-sized buffer
// is. When a record does not fit the kernel hands out what there is and calls the program again for
// the same task; so must whoever runs an iterator here.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace dwell::runtime {

class SeqFile {
 public:
  explicit SeqFile(size_t capacity) : capacity_(capacity) {}

  // False: it does not fit, and `overflowed` tells so until take().
  bool write(std::span<const std::byte> bytes) {
    if (bytes.size() > capacity_ - bytes_.size()) {
      overflowed_ = true;
      return false;
    }
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return true;
  }
  bool overflowed() const { return overflowed_; }
  std::vector<std::byte> take() {
    overflowed_ = false;
    return std::exchange(bytes_, {});
  }

 private:
  size_t capacity_;
  bool overflowed_ = false;
  std::vector<std::byte> bytes_;
};

}  // namespace dwell::runtime
