// Owned file descriptors, and reading small files that somebody else may control.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "base/result.h"

namespace dwell {
inline namespace v0 {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

// Opens for reading. Never blocks on a FIFO or a device and never becomes a controlling terminal.
Result<Fd> open_for_reading(const std::string& path);

// Whole content of a file, at most `limit_bytes` of it; more is an error. Works for /proc files.
Result<std::string> read_file(const std::string& path, size_t limit_bytes = size_t{64} << 20);
Result<std::string> read_all(int fd, const std::string& name, size_t limit_bytes);

// Writes the whole file under a temporary name beside `path`, syncs it and renames it: the final
// name never holds half a file. Anything but a regular file (a pipe, /dev/stdout) is written in
// place.
Status write_file_atomically(const std::string& path, const std::string& bytes);

// Whether write_file_atomically could begin: a recording should not fail at its end for a missing
// folder.
Status check_can_write(const std::string& path);

}  // namespace v0
}  // namespace dwell
