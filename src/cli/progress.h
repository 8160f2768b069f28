// One line on a terminal that is rewritten while the recording runs. In a pipe or a file one line
// when the window has begun, which scripts can wait for.
#pragma once

#include <cstdint>
#include <string>

namespace dwell::cli {

class Progress {
 public:
  explicit Progress(bool quiet);
  ~Progress();
  bool wanted() const { return wanted_; }
  void begin(const std::string& target) const;
  void show(uint64_t elapsed_ns, uint64_t switches, uint64_t losses);
  void clear();

 private:
  bool quiet_;
  bool wanted_;  // on a terminal
  bool shown_ = false;
};

}  // namespace dwell::cli
