// The simulator's own books of a thread: where its time went, kept by what the scheduler did, not
// by what the probe was told. A life is what the probe calls one: a thread under one name and
// program.
#pragma once

#include <cstdint>
#include <optional>

namespace dwell::simulation {

struct Window {
  uint64_t start_ns = ~uint64_t{0};  // not yet known, as the end
  uint64_t end_ns = ~uint64_t{0};
};

struct Books {
  uint64_t running_ns = 0;
  uint64_t run_queue_ns = 0;  // of intervals that lie in the window as a whole
  uint64_t blocked_ns = 0;
  uint64_t censored_run_queue_ns = 0;
  uint64_t censored_blocked_ns = 0;
  uint64_t intervals = 0;
  uint64_t blocked_intervals = 0;

  uint64_t sum_ns() const {
    return running_ns + run_queue_ns + blocked_ns + censored_run_queue_ns + censored_blocked_ns;
  }
  bool operator==(const Books&) const = default;
};

// A life with a part in the window.
struct Life {
  uint64_t start_boottime_ns = 0;  // of the thread: no two have the same
  uint64_t birth_ns = 0;
  uint64_t end_ns = 0;
  Books books;

  uint64_t alive_ns() const { return end_ns - birth_ns; }
};

// An off-CPU interval that has ended: its class, and what of it lay in the window.
struct ClosedInterval {
  uint8_t wait_class = 0;
  uint64_t blocked_ns = 0;
  uint64_t run_queue_ns = 0;
};

class ThreadTruth {
 public:
  // At `now` it is on a run queue, blocked or running, and has been for as long as can be told.
  void begin_on_cpu(uint64_t birth_ns, uint64_t now);
  void begin_off_cpu(uint64_t birth_ns, uint64_t now, uint8_t wait_class, bool blocked);

  void leave_cpu(const Window& window, uint64_t now, uint8_t wait_class, bool blocked);
  void wake(uint64_t now);  // from now on it waits for a CPU
  // Nothing if no part of the interval lies in the window.
  std::optional<ClosedInterval> come_on_cpu(const Window& window, uint64_t now);

  // On the CPU: the life ends, and another may begin.
  std::optional<Life> end_life(const Window& window, uint64_t now, uint64_t start_boottime_ns);
  // Off the CPU, at the end of the window.
  std::optional<ClosedInterval> close(const Window& window);

  bool on_cpu() const { return on_cpu_; }
  // On a run queue when the window begins: why it left the CPU is not known any more.
  void forget_reason(uint8_t wait_class) {
    wait_class_ = wait_class;
    blocked_ = false;
  }
  uint64_t birth_ns() const { return birth_ns_; }

 private:
  std::optional<ClosedInterval> book_interval(const Window& window, uint64_t now);

  Books books_;
  uint64_t birth_ns_ = 0;
  uint64_t since_ns_ = 0;  // on or off the CPU
  uint64_t woken_ns_ = 0;  // off: when the blocked part ended
  bool on_cpu_ = false;
  bool blocked_ = false;
  uint8_t wait_class_ = 0;
};

}  // namespace dwell::simulation
