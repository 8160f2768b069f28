#include "recording.h"

#include <algorithm>

namespace dwell::simulation {

Result<std::unique_ptr<Recording>> Recording::create(const SchedulerOptions& options,
                                                     const ProbeLimits& limits) {
  std::unique_ptr<Recording> recording(new Recording(options.cpus));
  DWELL_ASSIGN(recording->probe_, NativeProbe::load(recording->machine_, limits));
  SchedulerOptions chosen = options;
  chosen.renames_max = limits.renames_max;
  recording->scheduler_ =
      std::make_unique<Scheduler>(recording->machine_, recording->probe_.get(), chosen);
  return recording;
}

Comparison Recording::run(uint64_t switches, uint64_t between_drains) {
  scheduler_->open_window();
  for (uint64_t done = 0; done < switches; done += between_drains) {
    scheduler_->run_until(scheduler_->switches() + std::min(between_drains, switches - done));
    probe_->take_rings(told_);
    probe_->take_rows(told_);
  }
  scheduler_->close_window(told_);
  probe_->take_rows(told_);
  probe_->take_rows(told_);
  probe_->take_rings(told_);
  probe_->take_sums(told_);
  return compare(*scheduler_, told_);
}

}  // namespace dwell::simulation
