// One line on a terminal that is rewritten while the recording runs; nothing at all in a pipe or a
// file.
#pragma once

#include <cstdint>
#include <string>

namespace dwell::cli {

class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();
  bool wanted() const { return wanted_; }
  void show(uint64_t elapsed_ns, uint64_t switches, uint64_t losses);
  void clear();

 private:
  bool wanted_;
  bool shown_ = false;
};

}  // namespace dwell::cli
