#include "event_array/event_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"

namespace dwell {
inline namespace v0 {
namespace {

using Why = PollResult::Why;

Why why_of(WaitResult result) {
  switch (result) {
    case WaitResult::kReady:
      return Why::kEvents;
    case WaitResult::kTimeout:
      return Why::kTimeout;
    case WaitResult::kFlushed:
      return Why::kFlushed;
    case WaitResult::kClosed:
      return Why::kClosed;
    case WaitResult::kInterrupted:
      return Why::kInterrupted;
  }
  return Why::kTimeout;
}

}  // namespace

Result<std::unique_ptr<EventSession>> EventSession::create(EventArray& array,
                                                           SessionCallbacks callbacks,
                                                           const SessionOptions& options) {
  if (options.ordered && (array.format().sample_type & ring::kSampleTime) == 0)
    return usage_error(
        "events without timestamps cannot be ordered; open the array with timestamps");
  return std::unique_ptr<EventSession>(new EventSession(array, std::move(callbacks), options));
}

EventSession::EventSession(EventArray& array, SessionCallbacks callbacks,
                           const SessionOptions& options)
    : array_(array),
      callbacks_(std::move(callbacks)),
      options_(options),
      corrupt_seen_(array.slots()) {
  if (options_.ordered)
    order_.emplace(options_.order_bytes, [this](const OrderedRecord& ordered) {
      deliver(ordered.cpu, ordered.record, ordered.late);
    });
}

// -- passes over the rings -----------------------------------------------------------------------

uint64_t EventSession::consume() {
  pass_events_ = 0;
  stop_pass_ = false;
  return order_ ? consume_ordered() : consume_direct();
}

uint64_t EventSession::consume_direct() {
  array_.drain(options_.budget, [this](uint32_t cpu, const Record& record) {
    deliver(cpu, record, false);
    return !stop_pass_;
  });
  for (uint32_t cpu = 0; cpu < array_.slots(); ++cpu) report_corruption(cpu);
  return pass_events_;
}

uint64_t EventSession::consume_ordered() {
  const auto delay = static_cast<uint64_t>(options_.order_delay.count());
  // Taken before any head is read: what is stamped later may not have been seen.
  uint64_t cut = monotonic_ns() - delay;
  for (uint32_t cpu = 0; cpu < array_.slots(); ++cpu) {
    const uint64_t read = array_.drain_ring(
        cpu, options_.budget, [&](const Record& record) { order_record(cpu, record); });
    report_corruption(cpu);
    // A ring that the budget left with data is complete only up to what was read of it.
    const bool left_behind =
        read >= options_.budget.max_records || options_.budget.max_bytes != UINT64_MAX;
    if (left_behind && read != 0) cut = std::min(cut, order_->newest_of(cpu) - delay);
  }
  order_->emit_until(cut, [this] { return !stop_pass_; });
  return pass_events_;
}

uint64_t EventSession::drain_order() {
  pass_events_ = 0;
  stop_pass_ = false;
  if (order_) order_->emit_until(UINT64_MAX, [this] { return !stop_pass_; });
  return pass_events_;
}

void EventSession::order_record(uint32_t cpu, const Record& record) {
  if (!record.is_sample()) {
    const auto ids = decode_ids(array_.format(), record);
    // A loss stays behind its ring's last record even if its own stamp is older.
    if (ids && ids->time_ns > order_->newest_of(cpu))
      order_->push(cpu, ids->time_ns, record);
    else
      order_->push_behind(cpu, record);
    return;
  }
  Sample sample;
  decode_sample(array_.format(), record, sample);
  order_->push(cpu, sample.ids.time_ns, record);
}

// -- one record ----------------------------------------------------------------------------------

void EventSession::deliver(uint32_t cpu, const Record& record, bool late) {
  stats_.late += late;
  if (record.is_sample()) {
    deliver_sample(cpu, record, late);
  } else if (const auto lost = lost_count(record)) {
    if (*lost != 0 && callbacks_.on_lost) callbacks_.on_lost(cpu, *lost);
  } else {
    ++stats_.other;
    if (callbacks_.on_other) callbacks_.on_other(cpu, record);
  }
}

void EventSession::deliver_sample(uint32_t cpu, const Record& record, bool late) {
  const RecordFormat format = array_.format();
  if (format.sample_type == ring::kSampleRaw) {
    const auto payload = raw_payload(record, format.pad_in_misc);
    if (payload) return deliver_payload({cpu, 0, 0, 0, late, *payload});
    ++stats_.oversize;
    return trouble(cpu, Trouble::kOversize, record.size);
  }
  Sample sample;
  switch (decode_sample(array_.format(), record, sample)) {
    case SampleCheck::kOk:
      break;
    case SampleCheck::kTruncated:
      ++stats_.truncated;
      return trouble(cpu, Trouble::kTruncated, record.size);
    case SampleCheck::kOversize:
      ++stats_.oversize;
      return trouble(cpu, Trouble::kOversize, record.size);
  }
  deliver_payload({cpu, sample.ids.time_ns, sample.ids.pid, sample.ids.tid, late, sample.payload});
}

void EventSession::deliver_payload(Event event) {
  if (options_.length == SessionOptions::Length::kPrefixed) {
    const auto exact = length_prefixed(event.payload);
    if (!exact) {
      ++stats_.bad_length;
      return trouble(event.cpu, Trouble::kBadLength, event.payload.size());
    }
    event.payload = *exact;
  }
  deliver_event(event);
}

void EventSession::deliver_event(Event& event) {
  ++pass_events_;
  if (capture_ != nullptr) {
    capture_->bytes.assign(event.payload.begin(), event.payload.end());
    event.payload = capture_->bytes;
    static_cast<Event&>(*capture_) = event;
    capture_ = nullptr;
    ++stats_.received;
    stop_pass_ = true;
    return;
  }
  switch (callbacks_.on_event ? callbacks_.on_event(event) : Verdict::kContinue) {
    case Verdict::kContinue:
      ++stats_.received;
      break;
    case Verdict::kDropped:
      ++stats_.dropped;
      break;
    case Verdict::kStop:
      ++stats_.received;
      stop_pass_ = true;
      break;
  }
}

void EventSession::trouble(uint32_t cpu, Trouble what, uint64_t value) {
  if (callbacks_.on_trouble) callbacks_.on_trouble(cpu, what, value);
}

void EventSession::report_corruption(uint32_t cpu) {
  const uint64_t skipped = array_.skipped_bytes(cpu);
  if (skipped == corrupt_seen_[cpu]) return;
  trouble(cpu, Trouble::kCorrupt, skipped - corrupt_seen_[cpu]);
  corrupt_seen_[cpu] = skipped;
}

// -- waiting -------------------------------------------------------------------------------------

void EventSession::stop() {
  stop_asked_ = true;
  array_.interrupt();
}

std::optional<Why> EventSession::over(Clock::time_point start, std::chrono::nanoseconds timeout) {
  const auto now = Clock::now();
  if (stop_asked_.exchange(false)) return Why::kStopped;
  if (deadline_ && now >= *deadline_) return Why::kDeadline;
  if (timeout != kForever && now - start >= timeout) return Why::kTimeout;
  return std::nullopt;
}

std::chrono::nanoseconds EventSession::time_to_sleep(Clock::time_point start,
                                                     std::chrono::nanoseconds timeout) {
  const auto now = Clock::now();
  std::chrono::nanoseconds left = kForever;
  if (timeout != kForever) left = timeout - (now - start);
  if (deadline_) left = std::min<std::chrono::nanoseconds>(left, *deadline_ - now);
  // What is held back becomes due by the clock alone.
  if (order_ && !order_->empty()) left = std::min(left, options_.order_delay);
  return std::max(left, std::chrono::nanoseconds(0));
}

Result<PollResult> EventSession::poll(std::chrono::nanoseconds timeout) {
  const Clock::time_point start = Clock::now();
  for (;;) {
    if (const uint64_t events = consume(); events != 0) return PollResult{events, Why::kEvents};
    if (array_.closed()) return PollResult{0, Why::kClosed};
    if (!array_.has_data())
      if (const auto why = over(start, timeout)) return PollResult{0, *why};
    DWELL_ASSIGN(const WaitResult result, array_.wait(time_to_sleep(start, timeout)));
    if (result == WaitResult::kReady || result == WaitResult::kTimeout) continue;
    if (result == WaitResult::kInterrupted) {
      if (stop_asked_.exchange(false)) return PollResult{0, Why::kStopped};
      if (!array_.returns_on_signal()) continue;  // left over from a stop that over() saw
    }
    if (result == WaitResult::kFlushed)
      if (const uint64_t events = drain_order(); events != 0)
        return PollResult{events, Why::kFlushed};
    return PollResult{0, why_of(result)};
  }
}

Result<PollResult> EventSession::read(OwnedEvent& event, std::chrono::nanoseconds timeout) {
  capture_ = &event;
  auto result = poll(timeout);
  capture_ = nullptr;
  return result;
}

SessionStats EventSession::stats() const {
  SessionStats stats = stats_;
  if (order_) stats.forced = order_->forced();
  stats.rings = array_.total_stats();
  return stats;
}

}  // namespace v0
}  // namespace dwell
