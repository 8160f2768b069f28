// Bytes at offsets, of an open file or of a buffer: what the ELF reader reads.
//
// Always pread, never mmap: the owner of the file may truncate it at any moment, which would turn
// an access to a mapping into SIGBUS. A view: the file descriptor or buffer outlives it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace dwell::symbolize {

class FileBytes {
 public:
  static Result<FileBytes> of_file(int fd, const std::string& name);
  static FileBytes of_memory(std::string_view bytes) { return FileBytes(-1, bytes, bytes.size()); }

  uint64_t size() const { return size_; }
  // Fills all of `out`; false if the range is not inside the file or cannot be read.
  bool read(uint64_t offset, void* out, size_t bytes) const;
  // The range as a string, an error if it is not inside the file or longer than `limit`.
  Result<std::string> read_range(uint64_t offset, uint64_t bytes, uint64_t limit) const;

 private:
  FileBytes(int fd, std::string_view memory, uint64_t size)
      : fd_(fd), memory_(memory), size_(size) {}
  int fd_;
  std::string_view memory_;
  uint64_t size_;
};

}  // namespace dwell::symbolize
