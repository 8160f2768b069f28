// The kernel's own account of a thread: /proc/PID/task/TID/schedstat, read before the window opens
// and after it closes. On a loaded machine much may happen between the reading and the window.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "profile/profile.h"

namespace dwell::cli {

struct Schedstat {
  uint64_t on_cpu_ns = 0;
  uint64_t run_queue_ns = 0;
  uint64_t from_ns = 0, to_ns = 0;  // CLOCK_MONOTONIC: it was read in between
};

// By (pid, tid): every thread of `pids`, or of the whole machine if `pids` is empty. Threads that
// end meanwhile are left out.
using Schedstats = std::map<std::pair<uint32_t, uint32_t>, Schedstat>;
Schedstats read_schedstats(const std::vector<uint32_t>& pids);

// What the thread did between the two readings; nothing if one of them has not seen it.
std::optional<SchedstatDelta> schedstat_between(const Schedstats& before, const Schedstats& after,
                                                uint32_t pid, uint32_t tid);

}  // namespace dwell::cli
