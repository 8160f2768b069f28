// Catches what libbpf says while an object is loaded or attached, and turns a failure into words
// for people. One may exist at a time; libbpf's print callback is global.
#pragma once

#include <string>

#include "base/result.h"

namespace dwell::probe {

class LoadLog {
 public:
  LoadLog();
  ~LoadLog();
  LoadLog(const LoadLog&) = delete;
  LoadLog& operator=(const LoadLog&) = delete;

  // What failed, why, and what helps. A verifier log of more than 20 lines goes to a file that the
  // message names.
  std::unexpected<Error> explain(int code) const;
  // The verifier's own last word on the first program that it refused; empty if it did not speak.
  std::string verdict() const;
};

}  // namespace dwell::probe
