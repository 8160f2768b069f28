// A recording of a simulated machine from the start of its window to the comparison of the books:
// what src/cli/record.cc does with a real one.
#pragma once

#include <memory>

#include "comparison.h"
#include "native_probe.h"
#include "scheduler.h"

namespace dwell::simulation {

class Recording {
 public:
  static Result<std::unique_ptr<Recording>> create(const SchedulerOptions& options,
                                                   const ProbeLimits& limits = {});

  // Runs to the end. Rings and rows are drained once in so many switches.
  Comparison run(uint64_t switches, uint64_t between_drains);

  runtime::Machine& machine() { return machine_; }
  NativeProbe& probe() { return *probe_; }
  Scheduler& scheduler() { return *scheduler_; }
  Told& told() { return told_; }

 private:
  explicit Recording(uint32_t cpus) : machine_(cpus) {}

  runtime::Machine machine_;
  std::unique_ptr<NativeProbe> probe_;
  std::unique_ptr<Scheduler> scheduler_;
  Told told_;
};

}  // namespace dwell::simulation
