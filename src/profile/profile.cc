#include "profile/profile.h"

namespace dwell {
namespace {

constexpr std::array<const char*, kWaitClassCount> kWaitClassNames = {
    "none",      "interruptible",    "io",      "uninterruptible", "killable", "idle",
    "stopped",   "traced",           "parked",  "frozen",          "rtlock",   "other",
    "preempted", "preempted-kernel", "yielded", "signal",          "new",      "runnable",
};

constexpr std::array<const char*, kWalkEndCount> kWalkEndNames = {
    "not-walked",    "root",       "root-zero",   "root-pointer", "truncated",
    "no-tables",     "no-mapping", "bad-pointer", "unsupported",  "rules-full",
    "register-lost", "fault",      "bad-stack",   "bad-ip",       "compat",
};

void add(ThreadTimes& sum, const ThreadTimes& times) {
  sum.alive_ns += times.alive_ns;
  sum.running_ns += times.running_ns;
  sum.run_queue_ns += times.run_queue_ns;
  sum.blocked_ns += times.blocked_ns;
  sum.censored_run_queue_ns += times.censored_run_queue_ns;
  sum.censored_blocked_ns += times.censored_blocked_ns;
  sum.lost_ns += times.lost_ns;
  sum.filtered_ns += times.filtered_ns;
  sum.overflow_ns += times.overflow_ns;
  sum.intervals += times.intervals;
  sum.blocked_intervals += times.blocked_intervals;
  sum.filtered_intervals += times.filtered_intervals;
  sum.overflow_intervals += times.overflow_intervals;
}

}  // namespace

const char* wait_class_name(WaitClass wait_class) {
  const auto index = static_cast<size_t>(wait_class);
  return index < kWaitClassNames.size() ? kWaitClassNames[index] : "none";
}

const char* walk_end_name(WalkEnd end) {
  const auto index = static_cast<size_t>(end);
  return index < kWalkEndNames.size() ? kWalkEndNames[index] : "not-walked";
}

bool is_blocked_class(WaitClass wait_class) {
  return wait_class > WaitClass::kNone && wait_class < WaitClass::kPreempted;
}

Totals totals(const Profile& profile) {
  Totals sum;
  for (const Row& row : profile.rows) {
    sum.intervals += row.count;
    sum.blocked_ns += row.blocked_ns;
    sum.run_queue_ns += row.run_queue_ns;
  }
  sum.off_cpu_ns = sum.blocked_ns + sum.run_queue_ns;
  for (const Thread& thread : profile.threads) add(sum.threads, thread.times);
  sum.residual_ns = sum.threads.residual_ns();
  return sum;
}

}  // namespace dwell
