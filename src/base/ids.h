// Who is who, as user space says it: `pid` is the process, `tid` the thread. The probe converts
// from the kernel's words; nobody else does.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace dwell {
inline namespace v0 {

// One program image run by one process. Survives pid reuse (start time) and exec (exec_id).
struct ProcessKey {
  uint32_t pid = 0;
  uint32_t exec_id = 0;  // the kernel's self_exec_id: counts execs of this task and its ancestors
  uint64_t start_boottime_ns = 0;  // start of the thread-group leader, CLOCK_BOOTTIME

  auto operator<=>(const ProcessKey&) const = default;
};

struct ProcessKeyHash {
  size_t operator()(const ProcessKey& key) const {
    uint64_t h = key.start_boottime_ns * 0x9e3779b97f4a7c15ull;
    h ^= (uint64_t{key.pid} << 32 | key.exec_id) * 0xc2b2ae3d27d4eb4full;
    return static_cast<size_t>(h ^ (h >> 29));
  }
};

}  // namespace v0
}  // namespace dwell
