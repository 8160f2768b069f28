#include "cli/recorded_stacks.h"

#include <algorithm>

namespace dwell::cli {

ProcessKey process_key(const dwell_process_key& raw) {
  return {raw.pid, raw.exec_id, raw.start_boottime_ns};
}

namespace {

// Index of the first frame outside the scheduler, counted from the leaf: 0 if none is inside it.
size_t leaf_outside(const std::vector<uint64_t>& ips, const probe::SchedulerText& scheduler) {
  const auto inside = [&](uint64_t ip) { return scheduler.contains(ip); };
  const auto first = std::ranges::find_if(ips, inside);
  if (first == ips.end()) return 0;
  return static_cast<size_t>(std::find_if_not(first, ips.end(), inside) - ips.begin());
}

}  // namespace

void RecordedStacks::add(const collect::RawStack& raw, symbolize::Symbolizer& symbolizer) {
  const auto [at, is_new] = stacks_.try_emplace(raw.hash);
  if (!is_new) return;
  LocatedStack& stack = at->second;
  stack.complete = raw.flags & DWELL_STACK_COMPLETE;
  stack.truncated = raw.flags & DWELL_STACK_TRUNCATED;
  stack.locations.reserve(raw.ips.size());
  const ProcessKey process = process_key(raw.process);
  const bool is_kernel = raw.flags & DWELL_STACK_KERNEL;
  const size_t leaf = is_kernel ? leaf_outside(raw.ips, scheduler_) : 0;
  for (size_t i = leaf; i < raw.ips.size(); ++i) {
    // The leaf of a user stack is where the thread was; every other address is where a call returns
    // to.
    const bool is_return = is_kernel || !stack.locations.empty();
    stack.locations.push_back(
        is_kernel ? symbolizer.locate_kernel(raw.ips[i], is_return)
                  : symbolizer.locate_user(process, raw.ips[i], is_return, raw.first_seen_ns));
  }
}

const LocatedStack* RecordedStacks::find(uint64_t hash) const {
  const auto found = stacks_.find(hash);
  return found == stacks_.end() ? nullptr : &found->second;
}

}  // namespace dwell::cli
