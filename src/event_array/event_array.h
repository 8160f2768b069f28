// What both arrays are to their reader: one ring per CPU, drained in passes, with one place to
// wait. Rings are named by their CPU; a CPU that is offline or not covered has none. Records are
// borrowed from the ring (ring/ring_reader.h); EventSession decodes them for people.
//
// Rules for callers:
//   - wait() says why it returned; on kReady drain *every* ring. Readiness of a kernel ring is told
//     once, so that wait() looks at all heads before it sleeps and after it woke.
//   - Different threads may drain different rings; two on one ring take turns. A consumer must not
//     drain the ring it was called for.
//   - close() may come from any thread, also from within a consumer. No consumer starts after it
//     returned; it waits for those that run, unless it is called from one.
//   - A forked child must not use the array; its destructor there touches nothing of the parent's.
//   - Destroy it when no other thread uses it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "event_array/event_ring.h"

namespace dwell {
inline namespace v0 {

enum class WaitResult {
  kReady,        // at least one ring has data
  kTimeout,      //
  kFlushed,      // everything written before flush() has been drained
  kClosed,       //
  kInterrupted,  // interrupt(), or a signal if WaitOptions asks
};

inline constexpr std::chrono::nanoseconds kForever = std::chrono::nanoseconds::max();

struct WaitOptions {
  // How long data below the watermark may lie: rings are looked at that often without any wake-up.
  // 0: only wake-ups.
  std::chrono::nanoseconds sweep = std::chrono::milliseconds(100);
  bool return_on_signal = false;  // otherwise EINTR goes on with the time that remains
};

// Of one CPU, since the array was opened.
struct RingStats {
  uint64_t records = 0;
  uint64_t samples = 0;
  uint64_t bytes = 0;
  uint64_t lost_reported = 0;          // told by LOST records
  std::optional<uint64_t> lost_exact;  // told by the producer's own counter
  uint64_t lost_pending = 0;           // exact - reported: not told by a record yet
  uint64_t corrupt = 0;                // places where the bytes were no records
  uint64_t skipped_bytes = 0;
  uint64_t unknown = 0;  // records of types that perf does not have
  uint64_t waiting_bytes = 0;
  uint64_t peak_waiting_bytes = 0;  // most that a pass found
  uint64_t ring_bytes = 0;
};

class EventArray {
 public:
  EventArray(const EventArray&) = delete;
  EventArray& operator=(const EventArray&) = delete;
  virtual ~EventArray() = default;

  // CPUs 0 to slots() - 1 can have a ring.
  uint32_t slots() const { return static_cast<uint32_t>(slots_.size()); }
  bool has_ring(uint32_t cpu) const;
  uint32_t ring_count() const { return ring_count_.load(std::memory_order_relaxed); }

  // Drains one batch of one CPU's ring: `consume(const Record&)`, as RingReader::drain. 0 if the
  // CPU has no ring or the array is closed.
  template <typename Consume>
  uint64_t drain_ring(uint32_t cpu, const Budget& budget, Consume&& consume);

  // One pass over all rings, each with the budget: `consume(cpu, const Record&)`, which may return
  // false to stop the pass. The pass starts where the last one stopped. Makes no syscall.
  template <typename Consume>
  uint64_t drain(const Budget& budget, Consume&& consume);

  // Any ring with data? Loads of heads, no syscall.
  bool has_data();
  bool has_data(uint32_t cpu) { return cpu < slots() && ring_has_data(slot(cpu)); }

  Result<WaitResult> wait(std::chrono::nanoseconds timeout);
  // For a foreign poll or epoll loop: arm(), sleep on fd(), drain(). `fd` is a hint only and not to
  // be read; drain() looks at all heads. arm() returns false if there is no need to sleep.
  virtual int fd() const = 0;
  virtual Result<bool> arm() { return !has_data() && !closed(); }

  // The next wait() returns kFlushed when what is in the rings now has been drained.
  Status flush();
  // The wait() that runs, or else the next, returns kInterrupted.
  void interrupt();
  void close();
  bool closed() const { return closed_.load(std::memory_order_acquire); }

  // Makes outputs fail (and count) until resumed.
  Status pause();
  Status resume();

  // Overwriting arrays: newest record first.
  Status snapshot(uint32_t cpu, const SnapshotSink& sink);

  bool returns_on_signal() const { return options_.return_on_signal; }
  RecordFormat format() const { return format_; }
  RingStats stats(uint32_t cpu);
  RingStats total_stats();

  // Bytes of this CPU's ring that were no records, so far.
  uint64_t skipped_bytes(uint32_t cpu);

  // Looks for CPUs that came or went. wait() does so once per sweep.
  Status maintain();

 protected:
  struct Slot {
    std::mutex mutex;  // held while a batch is drained and while the ring is replaced
    std::unique_ptr<EventRing> ring;
    std::unique_ptr<EventRing> retired;  // its CPU went and came back; drained before `ring`
    RingStats past;                      // of rings that are gone
    uint64_t peak_waiting_bytes = 0;
    std::optional<uint64_t> flush_target;  // head when flush() was called
  };

  EventArray(uint32_t slots, const RecordFormat& format, const WaitOptions& options);

  // Sleeps until something may have happened or the time is over. Spurious returns are fine; an
  // errno (EINTR too) is an error. wake_fd() is readable when wait() must look around.
  virtual Status sleep(std::chrono::nanoseconds timeout) = 0;
  virtual Status release_slots() = 0;
  virtual Status rescan() { return {}; }

  Slot& slot(uint32_t cpu) { return *slots_[cpu]; }
  int wake_fd() const { return wake_.get(); }
  Status create_wake_fd();
  // Puts `ring` into its slot; the ring that was there is drained first and then dropped.
  void install(uint32_t cpu, std::unique_ptr<EventRing> ring);
  void remove_rings();
  bool in_child() const;

 private:
  // The right to drain one ring. Null reader: nothing to drain.
  class Turn {
   public:
    Turn(EventArray& array, uint32_t cpu);
    ~Turn();
    RingReader* reader = nullptr;

   private:
    std::unique_lock<std::mutex> lock_;
  };

  bool ring_has_data(Slot& slot);
  uint32_t ring_from(uint32_t cpu) const;
  uint32_t take_next_ring();
  void drop_retired(Slot& slot);
  bool flush_done();
  Result<std::optional<WaitResult>> look_around();
  Status set_paused(bool paused);
  void wake();
  void clear_wake();

  std::vector<std::unique_ptr<Slot>> slots_;
  // A bit for each slot with a ring: a map may have many more slots than the machine has CPUs, and
  // a pass over few records must not touch them all.
  std::unique_ptr<std::atomic<uint64_t>[]> occupied_;
  std::atomic<uint32_t> ring_count_ = 0;
  RecordFormat format_;
  WaitOptions options_;
  Fd wake_;
  uint32_t owner_;                  // which process of a chain of forks made it
  std::atomic<uint32_t> next_ = 0;  // ring that the next pass starts with
  std::atomic<bool> closed_ = false;
  std::atomic<bool> flush_asked_ = false;
  std::atomic<bool> interrupt_asked_ = false;
  std::atomic<bool> wake_written_ = false;  // wake_ is or is about to be readable
};

template <typename Consume>
uint64_t EventArray::drain_ring(uint32_t cpu, const Budget& budget, Consume&& consume) {
  Turn turn(*this, cpu);
  if (turn.reader == nullptr) return 0;
  uint64_t records = 0;
  RingReader::Batch batch = turn.reader->begin(budget);
  while (!closed_.load(std::memory_order_relaxed)) {
    const Record* record = batch.next();
    if (record == nullptr) break;
    ++records;
    if constexpr (std::is_same_v<std::invoke_result_t<Consume, const Record&>, bool>) {
      if (!consume(*record)) break;
    } else {
      consume(*record);
    }
  }
  return records;
}

template <typename Consume>
uint64_t EventArray::drain(const Budget& budget, Consume&& consume) {
  uint64_t records = 0;
  bool go_on = true;
  for (uint32_t left = ring_count(); left > 0 && go_on; --left) {
    const uint32_t cpu = take_next_ring();
    if (cpu == slots()) break;
    records += drain_ring(cpu, budget, [&](const Record& record) {
      if constexpr (std::is_same_v<std::invoke_result_t<Consume, uint32_t, const Record&>, bool>)
        go_on = consume(cpu, record);
      else
        consume(cpu, record);
      return go_on;
    });
  }
  return records;
}

}  // namespace v0
}  // namespace dwell
