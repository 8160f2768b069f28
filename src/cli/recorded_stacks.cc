#include "cli/recorded_stacks.h"

namespace dwell::cli {

ProcessKey process_key(const dwell_process_key& raw) {
  return {raw.pid, raw.exec_id, raw.start_boottime_ns};
}

void RecordedStacks::add(const std::vector<collect::RawStack>& stacks,
                         symbolize::Symbolizer& symbolizer) {
  for (const collect::RawStack& raw : stacks) {
    const auto [at, is_new] = stacks_.try_emplace(raw.hash);
    if (!is_new) continue;
    LocatedStack& stack = at->second;
    stack.complete = raw.flags & DWELL_STACK_COMPLETE;
    stack.truncated = raw.flags & DWELL_STACK_TRUNCATED;
    stack.locations.reserve(raw.ips.size());
    const ProcessKey process = process_key(raw.process);
    for (const uint64_t ip : raw.ips) {
      // The leaf of a user stack is where the thread was; every other address is where a call
      // returns to.
      const bool is_return = raw.flags & DWELL_STACK_KERNEL || !stack.locations.empty();
      stack.locations.push_back(
          raw.flags & DWELL_STACK_KERNEL
              ? symbolizer.locate_kernel(ip, is_return)
              : symbolizer.locate_user(process, ip, is_return, raw.first_seen_ns));
    }
  }
}

const LocatedStack* RecordedStacks::find(uint64_t hash) const {
  const auto found = stacks_.find(hash);
  return found == stacks_.end() ? nullptr : &found->second;
}

}  // namespace dwell::cli
