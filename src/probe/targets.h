// Which processes and threads are recorded: ids as the user gives them, checked against /proc, with
// their start times, so that a number used again by a stranger does not count.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace dwell::probe {

struct Target {
  uint32_t id = 0;
  bool is_thread = false;
  bool is_kernel = false;          // a kernel thread
  uint64_t start_boottime_ns = 0;  // to the clock tick, 10 ms: all that /proc tells
};

// Error::kUsage: no such process, or this is a thread's id, or we are in another pid namespace than
// the kernel's.
Result<Target> find_process(uint32_t pid);
Result<Target> find_thread(uint32_t tid);

// An error unless this process lives in the initial pid namespace, whose ids the probe speaks.
Status check_pid_namespace();

}  // namespace dwell::probe
