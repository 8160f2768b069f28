// For the exactness tests: what producers and readers take down, in memory that all processes
// share, so that the books stay exact though any of them is killed between any two instructions.
//
// The words:
//   produced   an output that changed its ring: published, or counted there as refused. One whose
//              producer was killed before that never happened.
//   delivered  taken down in the ring's Journal, once. What a reader had seen and not taken down
//              when it was killed is still in the ring, because its tail had not passed it: the
//              next reader takes it. What it had taken down comes again, and is recognised.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>

namespace dwell {
inline namespace v0 {

inline constexpr uint32_t kStageCpus = 64;
inline constexpr uint32_t kStageProducers = 4;
inline constexpr uint32_t kStageWriters = 2 * kStageProducers;  // each with its signal handler

// Random numbers for one writer; a signal handler has its own.
class Dice {
 public:
  explicit Dice(uint64_t seed = 1) : state_(seed) {}
  uint64_t below(uint64_t limit) { return next() % limit; }

 private:
  uint64_t next() {  // splitmix64
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  uint64_t state_;
};

// The records of one CPU's ring, as its readers took them down. One store, of `active_`, takes a
// record down; what follows it is done again by resume().
class Journal {
 public:
  uint64_t delivered() const { return entry().delivered; }
  // Sum of the LOST records before the records taken.
  uint64_t told() const { return entry().told; }
  // The number that this writer's next record must at least have.
  uint64_t next(uint32_t writer) const { return next_[writer]; }

  // A reader begins: finishes what the one before may have left half done.
  void resume() { next_[entry().writer] = entry().next; }

  // Takes down record `number` of `writer`, with the loss that was told right before it. False: it
  // has been taken before.
  bool take(uint32_t writer, uint64_t number, uint64_t lost) {
    if (number < next_[writer]) return false;
    const uint32_t free = 1 - active_;
    entries_[free] = {entry().delivered + 1, entry().told + lost, writer, number + 1};
    active_ = free;
    next_[writer] = number + 1;
    return true;
  }

 private:
  struct Entry {
    uint64_t delivered, told;
    uint32_t writer;
    uint64_t next;
  };
  const Entry& entry() const { return entries_[active_]; }

  std::array<Entry, 2> entries_{};
  std::atomic<uint32_t> active_ = 0;
  std::array<std::atomic<uint64_t>, kStageWriters> next_{};
};

// Shared by the supervisor, the producers and the reader. All zero at the start.
struct Stage {
  std::atomic<uint32_t> halt;  // not 0: producers park and answer with this number
  std::array<std::atomic<uint32_t>, kStageProducers> parked;
  std::array<Journal, kStageCpus> journals;
  std::atomic<uint64_t> taken_again;  // records that came twice because a reader was killed
  std::atomic<uint32_t> faults;
  std::array<char, 256> first_fault;

  // For children, whose assertions nobody sees.
  void fault(const char* what, uint64_t a = 0, uint64_t b = 0) {
    if (faults++ == 0)
      std::snprintf(first_fault.data(), first_fault.size(), "%s (%llu, %llu)", what,
                    static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
  }
};

}  // namespace v0
}  // namespace dwell
