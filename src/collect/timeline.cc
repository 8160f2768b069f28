#include "collect/timeline.h"

#include <fmt/format.h>

#include "base/text.h"

namespace dwell::collect {
namespace {

// CPUs that came up are looked for once in so many takes: every second in the recording loop.
constexpr uint32_t kTakesPerLook = 20;

}  // namespace

Result<std::unique_ptr<Timeline>> Timeline::open(int map_fd, const TimelineLimits& limits) {
  std::unique_ptr<Timeline> timeline(new Timeline(limits));
  KernelEventArrayOptions array;
  array.size.bytes_per_cpu = limits.ring_bytes;
  array.wakeup.watermark_bytes = limits.ring_bytes / 4;
  array.shrink_to_fit = true;
  array.timestamps = true;
  DWELL_ASSIGN(timeline->array_, KernelEventArray::open(map_fd, array));
  SessionCallbacks callbacks;
  callbacks.on_event = [at = timeline.get()](const Event& event) { return at->add(event); };
  SessionOptions session;
  session.ordered = true;
  DWELL_ASSIGN(timeline->session_,
               EventSession::create(*timeline->array_, std::move(callbacks), session));
  return timeline;
}

Verdict Timeline::add(const Event& event) {
  const auto interval = event.as<dwell_interval_record>();
  if (!interval) {
    ++strange_;
    return Verdict::kDropped;
  }
  const uint64_t ns = interval->blocked_ns + interval->run_queue_ns;
  ++received_.count;
  received_.ns += ns;
  if (intervals_.size() < limits_.intervals) {
    intervals_.push_back(*interval);
    return Verdict::kContinue;
  }
  ++dropped_.count;
  dropped_.ns += ns;
  return Verdict::kDropped;
}

Status Timeline::take() {
  session_->consume();
  if (++takes_ % kTakesPerLook != 0) return {};
  return array_->maintain();
}

Status Timeline::finish() {
  DWELL_TRY(array_->detach());
  while (array_->has_data()) session_->consume();
  session_->drain_order();
  return {};
}

std::vector<std::string> Timeline::notes() const {
  std::vector<std::string> notes;
  if (const uint64_t bytes = array_->report().ring_bytes; bytes < limits_.ring_bytes)
    notes.push_back(fmt::format(
        "locked memory is short: the timeline's rings have {} each instead of {}; raise ulimit -l",
        format_bytes(bytes), format_bytes(limits_.ring_bytes)));
  if (strange_ != 0)
    notes.push_back(
        fmt::format("{} records of the timeline's rings are no intervals: another program writes "
                    "to its map",
                    strange_));
  return notes;
}

}  // namespace dwell::collect
