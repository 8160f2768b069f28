#include <limits>

#include "profile/document.h"

namespace dwell {
namespace {

// Adds without wrapping; false once the sum has left 63 bits.
class BoundedSum {
 public:
  void add(uint64_t value) {
    fits_ = fits_ && value <= kMax && sum_ <= kMax - value;
    sum_ += value;
  }
  bool fits() const { return fits_; }

 private:
  static constexpr uint64_t kMax = std::numeric_limits<int64_t>::max();
  uint64_t sum_ = 0;
  bool fits_ = true;
};

}  // namespace

bool sums_fit(const Profile& profile) {
  BoundedSum rows, counts, max, threads, books, schedstat, intervals;
  for (const Row& row : profile.rows) {
    rows.add(row.blocked_ns);
    rows.add(row.run_queue_ns);
    counts.add(row.count);
    max.add(row.max_ns);
  }
  for (const Thread& thread : profile.threads) {
    const ThreadTimes& t = thread.times;
    threads.add(t.alive_ns);
    for (uint64_t ns : {t.running_ns, t.run_queue_ns, t.blocked_ns, t.censored_run_queue_ns,
                        t.censored_blocked_ns, t.lost_ns, t.filtered_ns, t.overflow_ns})
      books.add(ns);
    for (uint64_t count :
         {t.intervals, t.blocked_intervals, t.filtered_intervals, t.overflow_intervals})
      intervals.add(count);
    if (!thread.schedstat) continue;
    schedstat.add(thread.schedstat->on_cpu_ns);
    schedstat.add(thread.schedstat->run_queue_ns);
  }
  return rows.fits() && counts.fits() && max.fits() && threads.fits() && books.fits() &&
         schedstat.fits() && intervals.fits();
}

}  // namespace dwell
