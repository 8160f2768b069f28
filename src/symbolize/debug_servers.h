// Debug files by build id from debuginfod servers, for reports that ask for it.
//
// Nobody is asked unless an object of this class is made: what DEBUGINFOD_URLS says is not enough.
// libdebuginfod talks to the servers in a process of its own, with limits of time, memory and size
// of file; it is loaded there, so that nothing else of Dwell has a network library. A file is only
// believed if its build id is the one asked for. Files stay in libdebuginfod's own cache. Called by
// `dwell report`, which has one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace dwell::symbolize {

struct ServerLimits {
  std::chrono::seconds patience{300};         // for one file
  std::chrono::seconds patience_all{900};     // for all files together
  uint64_t file_bytes = uint64_t{4} << 30;    // of one file
  uint64_t memory_bytes = uint64_t{2} << 30;  // address space of the process
  static constexpr int kFailuresMax = 3;      // without any answer; then nobody is asked any more
};

class DebugServers {
 public:
  // An error if DEBUGINFOD_URLS names no server.
  static Result<DebugServers> create(const ServerLimits& limits = {});

  // The path of the debug file in the cache. `name` is for the lines on standard error that say
  // what is being fetched.
  Result<std::string> fetch(const std::string& build_id, const std::string& name);

 private:
  using Clock = std::chrono::steady_clock;
  explicit DebugServers(const ServerLimits& limits)
      : limits_(limits), end_(Clock::now() + limits.patience_all) {}
  Result<std::string> ask(const std::string& build_id);

  ServerLimits limits_;
  Clock::time_point end_;
  int failures_ = 0;
};

}  // namespace dwell::symbolize
