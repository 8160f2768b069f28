// Work that may go astray, in a process of its own: whatever it does (crash, hang, take all memory)
// ends there, and its memory is given back with it.
//
// Called by `dwell report`, which has one thread: between fork and exit the child allocates.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.h"

namespace dwell::symbolize {

struct ApartLimits {
  std::chrono::seconds patience{120};
  uint64_t memory_bytes = uint64_t{8} << 30;  // address space
  size_t answer_bytes = size_t{1} << 29;
  bool as_nobody = true;  // root becomes nobody: enough for files that are open already
};

struct ApartAnswer {
  enum class End { kWhole, kTooMuch, kDied } end = End::kDied;
  std::string bytes;  // all that it wrote
  std::string death;  // what it died of
};

// `work` gets a descriptor to write its answer to. It dumps no core and dies with us. An error only
// if there can be no process.
Result<ApartAnswer> work_apart(const ApartLimits& limits, const std::function<void(int)>& work);

// In the child: a limit that cannot be raised again (RLIMIT_NOFILE, ...).
void set_hard_limit(int what, uint64_t value);
// In the child: writes all or ends it.
void write_or_end(int fd, const void* data, size_t bytes);

}  // namespace dwell::symbolize
