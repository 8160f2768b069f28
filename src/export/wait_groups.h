// Rows joined over the threads of a process: a pool of 200 idle workers is one wait of 200 threads,
// not 200 waits. Used by the table.
#pragma once

#include <cstdint>
#include <vector>

#include "export/export.h"
#include "profile/profile.h"

namespace dwell {

struct WaitGroup {
  uint32_t process = 0;  // into Profile::processes
  uint32_t stack = 0;    // into Profile::stacks
  StringId cause = 0;
  WaitClass wait_class = WaitClass::kNone;
  bool waits_for_work = false;  // a kernel thread's everyday sleep
  uint64_t threads = 0;         // distinct ones
  uint64_t count = 0;
  uint64_t time_ns = 0;  // as the view says
  uint64_t total_ns = 0;
  uint64_t run_queue_ns = 0;
  uint64_t max_ns = 0;
};

// Equal (process, cause, class, stack); longest first, but kernel threads that wait for work after
// all others. Those without time in this view are left out.
std::vector<WaitGroup> group_by_wait(const Profile& profile, View view);
// Equal (cause, class), whatever the process and stack.
std::vector<WaitGroup> group_by_cause(const Profile& profile, View view);

}  // namespace dwell
