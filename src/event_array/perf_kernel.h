// What the event arrays ask of the kernel, so that tests can answer in its place: CPUs that come
// and go, a kernel without PERF_FORMAT_LOST, a CPU that goes offline between two calls.
#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace dwell {
inline namespace v0 {

class PerfKernel {
 public:
  virtual ~PerfKernel() = default;

  // perf_event_open(2). The error keeps the errno.
  virtual Result<Fd> open_event(const perf_event_attr& attr, pid_t tid, int cpu) = 0;
  virtual Result<std::vector<uint32_t>> online_cpus() = 0;
  virtual Status set_slot(int map_fd, uint32_t index, int event_fd) = 0;
  virtual Status clear_slot(int map_fd, uint32_t index) = 0;

  static PerfKernel& real();
};

}  // namespace v0
}  // namespace dwell
