// The kernel's clocks in nanoseconds. No call here uses the heap or fails: a signal handler may.
#pragma once

#include <time.h>

#include <cstdint>

namespace dwell {
inline namespace v0 {

inline uint64_t clock_ns(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

inline uint64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }

}  // namespace v0
}  // namespace dwell
