#include "truth.h"

#include <algorithm>

namespace dwell::simulation {
namespace {

constexpr uint64_t kNotYet = ~uint64_t{0};

// What of [from, to) lies in the window.
uint64_t inside(const Window& window, uint64_t from, uint64_t to) {
  from = std::max(from, window.start_ns);
  to = std::min(to, window.end_ns);
  return to > from ? to - from : 0;
}

}  // namespace

void ThreadTruth::begin_on_cpu(uint64_t birth_ns, uint64_t now) {
  *this = {};
  birth_ns_ = birth_ns;
  since_ns_ = now;
  on_cpu_ = true;
}

void ThreadTruth::begin_off_cpu(uint64_t birth_ns, uint64_t now, uint8_t wait_class, bool blocked) {
  *this = {};
  birth_ns_ = birth_ns;
  since_ns_ = now;
  wait_class_ = wait_class;
  blocked_ = blocked;
  woken_ns_ = blocked ? kNotYet : now;
}

void ThreadTruth::leave_cpu(const Window& window, uint64_t now, uint8_t wait_class, bool blocked) {
  books_.running_ns += inside(window, since_ns_, now);
  since_ns_ = now;
  on_cpu_ = false;
  wait_class_ = wait_class;
  blocked_ = blocked;
  woken_ns_ = blocked ? kNotYet : now;
}

void ThreadTruth::wake(uint64_t now) { woken_ns_ = now; }

std::optional<ClosedInterval> ThreadTruth::book_interval(const Window& window, uint64_t now) {
  if (inside(window, since_ns_, now) == 0) return std::nullopt;
  const uint64_t woken = std::min(woken_ns_, now);
  const ClosedInterval interval{wait_class_, inside(window, since_ns_, woken),
                                inside(window, woken, now)};
  const bool whole = since_ns_ >= window.start_ns && now <= window.end_ns;
  (whole ? books_.blocked_ns : books_.censored_blocked_ns) += interval.blocked_ns;
  (whole ? books_.run_queue_ns : books_.censored_run_queue_ns) += interval.run_queue_ns;
  ++books_.intervals;
  if (blocked_) ++books_.blocked_intervals;
  return interval;
}

std::optional<ClosedInterval> ThreadTruth::come_on_cpu(const Window& window, uint64_t now) {
  const auto interval = book_interval(window, now);
  since_ns_ = now;
  on_cpu_ = true;
  return interval;
}

std::optional<Life> ThreadTruth::end_life(const Window& window, uint64_t now,
                                          uint64_t start_boottime_ns) {
  if (on_cpu_) books_.running_ns += inside(window, since_ns_, now);
  const Life life{start_boottime_ns, std::max(birth_ns_, window.start_ns),
                  std::min(now, window.end_ns), books_};
  if (on_cpu_) begin_on_cpu(now, now);
  if (life.end_ns <= life.birth_ns) return std::nullopt;
  return life;
}

std::optional<ClosedInterval> ThreadTruth::close(const Window& window) {
  return book_interval(window, window.end_ns + 1);
}

}  // namespace dwell::simulation
