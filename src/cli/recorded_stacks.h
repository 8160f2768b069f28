// The stacks of a recording: raw addresses become locations at once, while the process lives; names
// come at the end.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "collect/drain.h"
#include "probe/signature.h"
#include "symbolize/symbolizer.h"

namespace dwell::cli {

struct LocatedStack {
  std::vector<symbolize::LocationId> locations;  // leaf first
  bool complete = false;
  bool truncated = false;
};

class RecordedStacks {
 public:
  // Kernel frames up to and including the scheduler's own are cut off: taken at switch-out, they
  // come with the frames of the probe.
  void set_scheduler(probe::SchedulerText scheduler) { scheduler_ = scheduler; }
  void add(const collect::RawStack& raw, symbolize::Symbolizer& symbolizer);
  const LocatedStack* find(uint64_t hash) const;  // null: it was never received
  size_t size() const { return stacks_.size(); }

 private:
  std::unordered_map<uint64_t, LocatedStack> stacks_;
  probe::SchedulerText scheduler_;
};

ProcessKey process_key(const dwell_process_key& raw);

}  // namespace dwell::cli
