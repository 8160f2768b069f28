#include "event_array/event_array.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>

namespace dwell {
inline namespace v0 {
namespace {

// Arrays that this thread is inside a consumer of: how many, for close().
thread_local int draining_depth = 0;

using Clock = std::chrono::steady_clock;

// Counts forks on the way from the first process to this one. Asked for at each batch, where
// getpid(2) would cost more than the batch.
std::atomic<uint32_t> fork_count = 0;

uint32_t current_fork_count() {
  static const bool registered = [] {
    pthread_atfork(nullptr, nullptr, [] { ++fork_count; });
    return true;
  }();
  return registered ? fork_count.load(std::memory_order_relaxed) : 0;
}

void add_counts(RingStats& stats, EventRing& ring) {
  const std::optional<uint64_t> exact = ring.exact_lost();
  if (exact) stats.lost_exact = stats.lost_exact.value_or(0) + *exact;
  if (ring.backward()) return;
  const ReaderCounts& counts = ring.reader().counts();
  stats.records += counts.records;
  stats.samples += counts.by_type[ring::kRecordSample];
  stats.bytes += counts.bytes;
  stats.lost_reported += counts.lost;
  stats.corrupt += counts.corrupt;
  stats.skipped_bytes += counts.skipped_bytes;
  for (size_t type = ring::kRecordTextPoke + 2; type < ReaderCounts::kTypes; ++type)
    stats.unknown += counts.by_type[type];
  stats.unknown += counts.by_type[0];
  stats.waiting_bytes += std::min(ring.reader().available_bytes(), ring.reader().data_size());
  stats.ring_bytes = ring.reader().data_size();
}

}  // namespace

EventArray::EventArray(uint32_t slots, const RecordFormat& format, const WaitOptions& options)
    : occupied_(std::make_unique<std::atomic<uint64_t>[]>(slots / 64 + 1)),
      format_(format),
      options_(options),
      owner_(current_fork_count()) {
  for (uint32_t i = 0; i < slots; ++i) slots_.push_back(std::make_unique<Slot>());
}

Status EventArray::create_wake_fd() {
  wake_ = Fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) return errno_error(errno, "cannot create an eventfd");
  return {};
}

bool EventArray::in_child() const { return current_fork_count() != owner_; }

// -- draining ------------------------------------------------------------------------------------

EventArray::Turn::Turn(EventArray& array, uint32_t cpu) {
  if (cpu >= array.slots()) return;
  Slot& slot = array.slot(cpu);
  lock_ = std::unique_lock(slot.mutex);
  ++draining_depth;
  if (array.closed() || array.in_child()) return;
  if (slot.ring == nullptr || slot.ring->backward()) return;
  if (slot.retired != nullptr && !slot.retired->reader().has_data()) array.drop_retired(slot);
  reader = slot.retired != nullptr ? &slot.retired->reader() : &slot.ring->reader();
  slot.peak_waiting_bytes =
      std::max(slot.peak_waiting_bytes, std::min(reader->available_bytes(), reader->data_size()));
}

EventArray::Turn::~Turn() {
  if (lock_.owns_lock()) --draining_depth;
}

void EventArray::install(uint32_t cpu, std::unique_ptr<EventRing> ring) {
  Slot& s = slot(cpu);
  std::lock_guard lock(s.mutex);
  drop_retired(s);
  if (s.ring == nullptr) ++ring_count_;
  s.retired = std::move(s.ring);
  s.ring = std::move(ring);
  s.flush_target.reset();
  occupied_[cpu / 64] |= uint64_t{1} << cpu % 64;
}

void EventArray::remove_rings() {
  for (uint32_t cpu = 0; cpu < slots(); ++cpu) {
    std::lock_guard lock(slot(cpu).mutex);
    if (slot(cpu).ring == nullptr) continue;
    slot(cpu).ring.reset();
    occupied_[cpu / 64] &= ~(uint64_t{1} << cpu % 64);
    --ring_count_;
  }
}

// The first CPU with a ring that is not below `cpu`; slots() if there is none.
uint32_t EventArray::ring_from(uint32_t cpu) const {
  for (uint32_t word = cpu / 64; word <= slots() / 64; ++word) {
    uint64_t rings = occupied_[word].load(std::memory_order_relaxed);
    if (word == cpu / 64) rings &= UINT64_MAX << cpu % 64;
    if (rings != 0) return word * 64 + static_cast<uint32_t>(std::countr_zero(rings));
  }
  return slots();
}

// The ring whose turn it is in a pass; slots() if there is none.
uint32_t EventArray::take_next_ring() {
  uint32_t cpu = ring_from(next_.load(std::memory_order_relaxed));
  if (cpu == slots()) cpu = ring_from(0);
  next_.store(cpu + 1 < slots() ? cpu + 1 : 0, std::memory_order_relaxed);
  return cpu;
}

void EventArray::drop_retired(Slot& s) {
  if (s.retired == nullptr) return;
  add_counts(s.past, *s.retired);
  s.past.waiting_bytes = 0;
  s.retired.reset();
}

bool EventArray::has_ring(uint32_t cpu) const {
  if (cpu >= slots()) return false;
  std::lock_guard lock(slots_[cpu]->mutex);
  return slots_[cpu]->ring != nullptr;
}

bool EventArray::ring_has_data(Slot& s) {
  // A ring that another thread drains is that thread's business.
  std::unique_lock lock(s.mutex, std::try_to_lock);
  if (!lock || s.ring == nullptr || s.ring->backward()) return false;
  return s.ring->reader().has_data() || (s.retired != nullptr && s.retired->reader().has_data());
}

bool EventArray::has_data() {
  for (uint32_t cpu = ring_from(0); cpu < slots(); cpu = ring_from(cpu + 1))
    if (ring_has_data(slot(cpu))) return true;
  return false;
}

// -- waiting -------------------------------------------------------------------------------------

Status EventArray::flush() {
  if (closed()) return runtime_error("cannot flush a closed event array");
  for (const auto& s : slots_) {
    std::lock_guard lock(s->mutex);
    if (s->ring != nullptr && !s->ring->backward()) s->flush_target = s->ring->reader().head();
  }
  flush_asked_ = true;
  wake();
  return {};
}

void EventArray::interrupt() {
  interrupt_asked_ = true;
  wake();
}

// Whether each ring has been drained up to where it was when flush() was called.
bool EventArray::flush_done() {
  for (const auto& s : slots_) {
    std::lock_guard lock(s->mutex);
    if (s->retired != nullptr && s->retired->reader().has_data()) return false;
    if (!s->flush_target || s->ring == nullptr) continue;
    if (static_cast<int64_t>(*s->flush_target - s->ring->reader().position()) >=
        static_cast<int64_t>(ring::kRecordAlign))
      return false;
  }
  return true;
}

// What can be told without sleeping.
Result<std::optional<WaitResult>> EventArray::look_around() {
  if (in_child())
    return usage_error("an event array cannot be used in a forked child; open it again there");
  if (closed()) return WaitResult::kClosed;
  if (interrupt_asked_.exchange(false)) return WaitResult::kInterrupted;
  if (flush_asked_ && flush_done()) {
    flush_asked_ = false;
    return WaitResult::kFlushed;
  }
  if (has_data()) return WaitResult::kReady;
  return std::nullopt;
}

Result<WaitResult> EventArray::wait(std::chrono::nanoseconds timeout) {
  const Clock::time_point start = Clock::now();
  Clock::time_point swept = start;
  for (;;) {
    DWELL_ASSIGN(const auto seen, look_around());
    if (seen) return *seen;
    const auto elapsed = Clock::now() - start;
    if (timeout != kForever && elapsed >= timeout) return WaitResult::kTimeout;
    auto nap = timeout == kForever ? kForever : timeout - elapsed;
    const bool sweeping = options_.sweep.count() > 0;
    if (sweeping) nap = std::min<std::chrono::nanoseconds>(nap, options_.sweep);
    const Status slept = sleep(nap);
    clear_wake();
    if (!slept && slept.error().code != EINTR) return std::unexpected(slept.error());
    if (!slept && options_.return_on_signal) return WaitResult::kInterrupted;
    if (sweeping && Clock::now() - swept >= options_.sweep) {
      swept = Clock::now();
      DWELL_TRY(maintain());
    }
  }
}

Status EventArray::maintain() { return rescan(); }

void EventArray::wake() {
  const uint64_t one = 1;
  wake_written_ = true;
  // Full only when 2^64 - 2 wakes are unread, and then it is readable.
  [[maybe_unused]] const ssize_t n = write(wake_.get(), &one, sizeof one);
}

void EventArray::clear_wake() {
  if (!wake_written_.exchange(false)) return;
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = read(wake_.get(), &count, sizeof count);
  if (closed()) wake();  // every thread that waits must see it
}

void EventArray::close() {
  if (in_child()) return;
  if (!closed_.exchange(true, std::memory_order_acq_rel)) {
    // A slot that cannot be cleared goes with the descriptor it was set through.
    (void)release_slots();
  }
  wake();
  if (draining_depth > 0) return;  // called by a consumer: it must not wait for itself
  for (const auto& s : slots_) std::lock_guard lock(s->mutex);
}

// -- control and statistics ----------------------------------------------------------------------

Status EventArray::set_paused(bool paused) {
  for (const auto& s : slots_) {
    std::lock_guard lock(s->mutex);
    if (s->ring != nullptr) DWELL_TRY(s->ring->pause(paused));
  }
  return {};
}

Status EventArray::pause() { return set_paused(true); }
Status EventArray::resume() { return set_paused(false); }

Status EventArray::snapshot(uint32_t cpu, const SnapshotSink& sink) {
  if (closed()) return runtime_error("cannot take a snapshot of a closed event array");
  std::unique_lock<std::mutex> lock;
  if (cpu < slots()) lock = std::unique_lock(slot(cpu).mutex);
  if (!lock || slot(cpu).ring == nullptr)
    return usage_error(fmt::format("cannot take a snapshot: CPU {} has no ring", cpu));
  return slot(cpu).ring->snapshot(sink);
}

RingStats EventArray::stats(uint32_t cpu) {
  if (cpu >= slots() || in_child()) return {};
  Slot& s = slot(cpu);
  std::lock_guard lock(s.mutex);
  RingStats stats = s.past;
  if (s.ring != nullptr) add_counts(stats, *s.ring);
  if (s.retired != nullptr) add_counts(stats, *s.retired);
  if (stats.lost_exact && *stats.lost_exact > stats.lost_reported)
    stats.lost_pending = *stats.lost_exact - stats.lost_reported;
  stats.peak_waiting_bytes = s.peak_waiting_bytes;
  return stats;
}

uint64_t EventArray::skipped_bytes(uint32_t cpu) {
  Slot& s = slot(cpu);
  std::lock_guard lock(s.mutex);
  uint64_t bytes = s.past.skipped_bytes;
  for (EventRing* ring : {s.ring.get(), s.retired.get()})
    if (ring != nullptr && !ring->backward()) bytes += ring->reader().counts().skipped_bytes;
  return bytes;
}

RingStats EventArray::total_stats() {
  RingStats total;
  for (uint32_t cpu = 0; cpu < slots(); ++cpu) {
    const RingStats one = stats(cpu);
    total.records += one.records;
    total.samples += one.samples;
    total.bytes += one.bytes;
    total.lost_reported += one.lost_reported;
    if (one.lost_exact) total.lost_exact = total.lost_exact.value_or(0) + *one.lost_exact;
    total.lost_pending += one.lost_pending;
    total.corrupt += one.corrupt;
    total.skipped_bytes += one.skipped_bytes;
    total.unknown += one.unknown;
    total.waiting_bytes += one.waiting_bytes;
    total.peak_waiting_bytes = std::max(total.peak_waiting_bytes, one.peak_waiting_bytes);
    total.ring_bytes += one.ring_bytes;
  }
  return total;
}

}  // namespace v0
}  // namespace dwell
