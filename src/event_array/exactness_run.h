// For the exactness tests: random load on all CPUs while producers and readers are killed at random
// instants, signals storm and, if asked, CPUs go offline and come back. After each killed producer
// the others pause, the ring is drained and the subject compares its books: they are equal each
// time, not only in the end.
//
//   DWELL_TEST_SECONDS  how long (3)      DWELL_TEST_SEED     of the random choices (1)
//   DWELL_TEST_HOTPLUG  =1: takes the last CPU offline now and then
//
// Everything here runs in one process without threads, which forks producers and readers.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <vector>

#include "event_array/event_array.h"
#include "event_array/exactness_books.h"

namespace dwell {
inline namespace v0 {

// One kind of event array under test.
class ExactnessSubject {
 public:
  explicit ExactnessSubject(Stage& stage) : stage_(stage) {}
  virtual ~ExactnessSubject() = default;

  // In a producer, also from its signal handler: one output.
  virtual void produce(uint32_t writer, Dice& dice) = 0;
  // In a reader.
  virtual Result<std::unique_ptr<EventArray>> open() = 0;
  // In a reader: a sample that arrived on `cpu`, with the loss told right before it.
  virtual void take(uint32_t cpu, const Sample& sample, uint64_t lost) = 0;
  // The reader is stopped and about to be killed; it is dead.
  virtual void reader_stopped() {}
  virtual void reader_dead() {}
  // All producers are parked or dead: whether the reader has nothing left to take.
  virtual bool drained() = 0;
  // ... and it has not: compares the books; `dead` producers may have died inside an output.
  virtual void compare(const std::vector<bool>& dead) = 0;
  // Prints produced, delivered and lost of each CPU.
  virtual void print() const = 0;

 protected:
  Stage& stage_;
};

class ExactnessRun {
 public:
  ExactnessRun(Stage& stage, ExactnessSubject& subject);
  ~ExactnessRun();
  ExactnessRun(const ExactnessRun&) = delete;
  ExactnessRun& operator=(const ExactnessRun&) = delete;

  // Until the time is over or an expectation failed.
  void run();
  uint64_t kills() const { return producer_kills_; }
  uint64_t reader_ends() const { return reader_kills_ + reader_exits_; }

  static std::chrono::seconds seconds();

 private:
  void act();
  void start_producer(uint32_t slot);
  void start_reader();
  void kill_producers();
  void end_reader(bool kill_it);
  void storm();
  void move_cpu();
  void settle(const std::vector<bool>& dead);
  void expect_all_alive();

  Stage& stage_;
  ExactnessSubject& subject_;
  Dice dice_;
  std::vector<pid_t> producers_;
  pid_t reader_ = -1;
  uint32_t halts_ = 0;
  uint64_t producer_kills_ = 0, reader_kills_ = 0, reader_exits_ = 0, storms_ = 0;
  uint64_t cpu_moves_ = 0;
  std::chrono::steady_clock::time_point next_move_;
  int cpu_online_ = -1;  // descriptor of the last CPU's switch, -1 without hot-plug
  bool last_cpu_is_off_ = false;
};

// A Stage that children share.
Stage& make_stage();

}  // namespace v0
}  // namespace dwell
