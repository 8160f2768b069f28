// Puts the sums, the stacks and the names together into the finished Profile.
#pragma once

#include <optional>
#include <vector>

#include "cli/recorded_stacks.h"
#include "cli/schedstat.h"
#include "collect/totals.h"
#include "profile/profile.h"
#include "symbolize/symbolizer.h"

namespace dwell::cli {

// What `--timeline` recorded.
struct RecordedTimeline {
  uint64_t min_ns = 0;
  std::vector<dwell_interval_record> intervals;
  dwell_counter_cell received = {};  // intervals and more that were dropped
  dwell_counter_cell dropped = {};
};

struct Recording {
  collect::Totals totals;
  RecordedStacks stacks;
  std::vector<dwell_counter_cell> counters;
  std::optional<RecordedTimeline> timeline;
  Schedstats before, after;
  Window window;
  uint32_t command_pid = 0;         // of -- COMMAND, else 0
  uint64_t boottime_offset_ns = 0;  // CLOCK_BOOTTIME minus CLOCK_MONOTONIC at the end
};

// `facts` has the fields that are no tables (host, target, cost, ...).
Profile build_profile(const Recording& recording, symbolize::Symbolizer& symbolizer, Profile facts);

}  // namespace dwell::cli
