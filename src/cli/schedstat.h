// The kernel's own account of a thread: /proc/PID/task/TID/schedstat, read at both ends of the
// window.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace dwell::cli {

struct Schedstat {
  uint64_t on_cpu_ns = 0;
  uint64_t run_queue_ns = 0;
};

// By (pid, tid): every thread of `pids`, or of the whole machine if `pids` is empty. Threads that
// end meanwhile are left out.
using Schedstats = std::map<std::pair<uint32_t, uint32_t>, Schedstat>;
Schedstats read_schedstats(const std::vector<uint32_t>& pids);

}  // namespace dwell::cli
