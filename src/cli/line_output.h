// Standard output of a command that goes on for long: bounded in memory, and never in the way of a
// stop. A reader that is slow holds the writer up (the rings then lose, and count it); one that is
// gone ends the output quietly.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace dwell::cli {

class LineOutput {
 public:
  explicit LineOutput(int fd) : fd_(fd) {}  // borrowed

  // Append whole lines, then call line_done().
  std::string& buffer() { return buffer_; }
  // Writes when kBufferBytes have gathered.
  Status line_done() { return buffer_.size() < kBufferBytes ? Status() : flush(); }
  // Writes all. After a stop request a reader that takes nothing for kLastWriteMs ends the output.
  Status flush();

  // Nobody reads any more: what comes now is not written.
  bool ended();

 private:
  static constexpr size_t kBufferBytes = 256 << 10;
  static constexpr int kLastWriteMs = 500;

  bool wait_until_writable();

  int fd_;
  bool ended_ = false;
  std::string buffer_;
};

}  // namespace dwell::cli
