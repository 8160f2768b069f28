// `dwell events`: prints the records of a perf event array, whoever's it is (docs/events.md).
#pragma once

#include "base/result.h"
#include "cli/events_options.h"

namespace dwell::cli {

Status run_events(const EventsOptions& options);

}  // namespace dwell::cli
