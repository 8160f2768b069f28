// Decoded events for people, over either array: callbacks or one event at a time, exact payloads,
// deadlines, stop, loss and every other trouble as values, optionally in order of time.
// One thread polls; stop() and EventArray::close() and flush() may come from others.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "event_array/event_array.h"
#include "event_array/time_order.h"

namespace dwell {
inline namespace v0 {

struct Event {
  uint32_t cpu = 0;
  uint64_t time_ns = 0;  // 0 without timestamps
  uint32_t pid = 0;
  uint32_t tid = 0;
  bool late = false;  // ordered sessions: older than an event that came before
  // Kernel rings: up to 7 bytes of padding at the end unless SessionOptions::length says otherwise.
  std::span<const std::byte> payload;

  // Exactly sizeof(T) bytes; none if the payload is shorter.
  template <typename T>
  std::optional<T> as() const {
    Sample sample;
    sample.payload = payload;
    return payload_as<T>(sample);
  }
};

// An event that outlives its ring.
struct OwnedEvent : Event {
  std::vector<std::byte> bytes;  // `payload` is a view of these
};

enum class Verdict {
  kContinue,
  kStop,     // poll() returns after this event; the rest comes with the next
  kDropped,  // the application had no room for it: counted as such
};

enum class Trouble {
  kCorrupt,    // bytes that are no records; value: bytes skipped
  kOversize,   // a payload above 64 KiB, which the kernel cut; value: what its size field says
  kTruncated,  // fields run past the record; value: size of the record
  kBadLength,  // length prefix runs past the payload; value: size of the payload
};

struct SessionCallbacks {
  std::function<Verdict(const Event&)> on_event;
  // More than 0 outputs were refused before this point.
  std::function<void(uint32_t cpu, uint64_t lost)> on_lost{};
  std::function<void(uint32_t cpu, Trouble trouble, uint64_t value)> on_trouble{};
  // Any record that is neither sample nor loss.
  std::function<void(uint32_t cpu, const Record&)> on_other{};
};

struct SessionOptions {
  enum class Length {
    kAsStored,  // with the kernel's padding; exact from a UserEventArray
    kPrefixed,  // payloads start with a u32, the number of bytes after it; events hold those
  };
  Length length = Length::kAsStored;
  Budget budget{};       // of each ring per pass
  bool ordered = false;  // one order of time over all CPUs; the array needs timestamps
  // Longest time between stamping and publishing an event (interrupts in between).
  std::chrono::nanoseconds order_delay = std::chrono::milliseconds(1);
  uint64_t order_bytes = 64 << 20;  // held for ordering at most
};

struct PollResult {
  enum class Why { kEvents, kTimeout, kDeadline, kFlushed, kStopped, kClosed, kInterrupted };
  uint64_t events = 0;
  Why why = Why::kTimeout;
};

struct SessionStats {
  uint64_t received = 0;  // events that the application took
  uint64_t dropped = 0;   // Verdict::kDropped
  uint64_t oversize = 0;
  uint64_t truncated = 0;
  uint64_t bad_length = 0;
  uint64_t other = 0;
  uint64_t late = 0;
  uint64_t forced = 0;  // emitted early because order_bytes were full
  RingStats rings;      // sums over all CPUs
};

class EventSession {
 public:
  using Clock = std::chrono::steady_clock;

  static Result<std::unique_ptr<EventSession>> create(EventArray& array, SessionCallbacks callbacks,
                                                      const SessionOptions& options = {});

  // Delivers what is there; if nothing is, waits for something. Returns after at least one event,
  // or with the reason why there is none.
  Result<PollResult> poll(std::chrono::nanoseconds timeout);
  // Delivers what is there. No system call but a reading of the clock in ordered sessions.
  uint64_t consume();
  // One event, copied; callbacks other than on_event are called as usual.
  Result<PollResult> read(OwnedEvent& event, std::chrono::nanoseconds timeout);

  // poll() returns kDeadline once this is past and nothing is there. None: no deadline.
  void set_deadline(std::optional<Clock::time_point> deadline) { deadline_ = deadline; }
  // The poll() that runs, or else the next, returns kStopped when it has delivered what is there.
  void stop();
  // Ordered sessions: delivers what is held back, whatever the time. For the end.
  uint64_t drain_order();

  SessionStats stats() const;

 private:
  EventSession(EventArray& array, SessionCallbacks callbacks, const SessionOptions& options);

  uint64_t consume_direct();
  uint64_t consume_ordered();
  void order_record(uint32_t cpu, const Record& record);
  void deliver(uint32_t cpu, const Record& record, bool late);
  void deliver_sample(uint32_t cpu, const Record& record, bool late);
  void deliver_payload(Event event);
  void deliver_event(Event& event);
  void trouble(uint32_t cpu, Trouble what, uint64_t value);
  void report_corruption(uint32_t cpu);
  std::chrono::nanoseconds time_to_sleep(Clock::time_point start, std::chrono::nanoseconds timeout);
  std::optional<PollResult::Why> over(Clock::time_point start, std::chrono::nanoseconds timeout);

  EventArray& array_;
  SessionCallbacks callbacks_;
  SessionOptions options_;
  std::optional<TimeOrder> order_;
  std::optional<Clock::time_point> deadline_;
  std::atomic<bool> stop_asked_ = false;
  bool stop_pass_ = false;  // a verdict ended this pass
  uint64_t pass_events_ = 0;
  OwnedEvent* capture_ = nullptr;       // read() wants the next event
  std::vector<uint64_t> corrupt_seen_;  // by CPU
  SessionStats stats_;
};

}  // namespace v0
}  // namespace dwell
