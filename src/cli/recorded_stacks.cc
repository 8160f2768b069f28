#include "cli/recorded_stacks.h"

#include <algorithm>

#include "abi/python.h"

namespace dwell::cli {

ProcessKey process_key(const dwell_process_key& raw) {
  return {raw.pid, raw.exec_id, raw.start_boottime_ns};
}

namespace {

// Index of the caller of schedule(), counted from the leaf: 0 if it is not on the stack.
size_t caller_of_schedule(const std::vector<uint64_t>& ips, const probe::SchedulerCode& scheduler) {
  const auto inside = [&](uint64_t ip) { return scheduler.is_switch(ip); };
  const auto first = std::ranges::find_if(ips, inside);
  if (first == ips.end()) return 0;
  return static_cast<size_t>(std::find_if_not(first, ips.end(), inside) - ips.begin());
}

Walk walk_of(const collect::RawStack& raw) {
  static_assert(kWalkEndCount == DWELL_WALK_END_COUNT + 1);
  return {static_cast<WalkEnd>(std::min<int>(raw.end, DWELL_WALK_END_COUNT - 1) + 1),
          raw.pointer_steps};
}

}  // namespace

void RecordedStacks::add(const collect::RawStack& raw, symbolize::Symbolizer& symbolizer) {
  const auto [at, is_new] = stacks_.try_emplace(raw.hash);
  if (!is_new) return;
  LocatedStack& stack = at->second;
  stack.complete = raw.flags & DWELL_STACK_COMPLETE;
  stack.truncated = raw.flags & DWELL_STACK_TRUNCATED;
  if (raw.flags & DWELL_STACK_PYTHON) {
    locate_python(raw, symbolizer, stack);
  } else if (raw.flags & DWELL_STACK_PAIR) {
    if (raw.ips.size() < 2) return;
    stack.native = raw.ips[0];
    stack.python = raw.ips[1];
  } else {
    locate(raw, symbolizer, stack);
  }
}

void RecordedStacks::add_python(std::span<const collect::RawStack> all,
                                symbolize::Symbolizer& symbolizer) {
  for (const collect::RawStack& raw : all)
    if (raw.flags & DWELL_STACK_PYTHON) add(raw, symbolizer);
}

void RecordedStacks::locate_python(const collect::RawStack& raw, symbolize::Symbolizer& symbolizer,
                                   LocatedStack& stack) {
  stack.locations = symbolizer.locate_python(process_key(raw.process), raw.end, raw.ips,
                                             raw.first_seen_ns, unread_python_);
  for (const uint64_t word : raw.ips) stack.begins.push_back(DWELL_PYTHON_BEGINS(word));
}

void RecordedStacks::locate(const collect::RawStack& raw, symbolize::Symbolizer& symbolizer,
                            LocatedStack& stack) {
  stack.locations.reserve(raw.ips.size());
  const ProcessKey process = process_key(raw.process);
  const bool is_kernel = raw.flags & DWELL_STACK_KERNEL;
  if (!is_kernel) stack.walk = walk_of(raw);
  const size_t leaf = is_kernel ? caller_of_schedule(raw.ips, scheduler_) : 0;
  for (size_t i = leaf; i < raw.ips.size(); ++i) {
    // The leaf of a user stack is where the thread was; every other address is where a call returns
    // to.
    const bool is_return = is_kernel || !stack.locations.empty();
    stack.locations.push_back(
        is_kernel ? symbolizer.locate_kernel(raw.ips[i], is_return)
                  : symbolizer.locate_user(process, raw.ips[i], is_return, raw.first_seen_ns));
  }
}

void RecordedStacks::add_sample(const dwell_kernel_stack_sample& sample,
                                const ReadKernel& read_kernel) {
  constexpr uint64_t kBytes = probe::SchedulerCode::kBranchBytes;
  const auto [call, is_new] = calls_.try_emplace(sample.ips[0]);
  if (is_new) call->second = read_kernel(sample.ips[0] - kBytes, kBytes);
  add_scheduler_frames(sample.walked_hash, scheduler_.frames_of(sample, call->second));
}

void RecordedStacks::add_scheduler_frames(uint64_t hash, std::vector<uint64_t> frames) {
  const auto at = scheduler_frames_.find(hash);
  if (at == scheduler_frames_.end()) {
    scheduler_frames_.emplace(hash, std::move(frames));
    return;
  }
  std::vector<uint64_t>& known = at->second;
  const auto differ = std::mismatch(known.rbegin(), known.rend(), frames.rbegin(), frames.rend());
  known.erase(known.begin(), differ.first.base());
}

void RecordedStacks::finish(symbolize::Symbolizer& symbolizer) {
  for (const auto& [hash, frames] : scheduler_frames_) {
    const auto stack = stacks_.find(hash);
    if (stack == stacks_.end()) continue;
    std::vector<symbolize::LocationId> below;
    for (const uint64_t frame : frames) below.push_back(symbolizer.locate_kernel(frame, true));
    stack->second.locations.insert(stack->second.locations.begin(), below.begin(), below.end());
  }
  scheduler_frames_.clear();
}

const LocatedStack* RecordedStacks::find(uint64_t hash) const {
  const auto found = stacks_.find(hash);
  return found == stacks_.end() ? nullptr : &found->second;
}

}  // namespace dwell::cli
