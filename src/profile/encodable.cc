#include <fmt/format.h>

#include <limits>
#include <string_view>

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
  BoundedSum rows, counts, max, threads, books, schedstat, intervals, timeline;
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
    schedstat.add(thread.schedstat->stretch_ns);
  }
  for (const Interval& interval : profile.timeline) {
    timeline.add(interval.blocked_ns);
    timeline.add(interval.run_queue_ns);
  }
  return rows.fits() && counts.fits() && max.fits() && threads.fits() && books.fits() &&
         schedstat.fits() && intervals.fits() && timeline.fits();
}

Status check_encodable(const Profile& profile) {
  struct Size {
    const char* table;
    size_t size;
    uint64_t max;
  };
  const Size sizes[] = {{"strings", profile.strings.size(), kStringsMax},
                        {"modules", profile.modules.size(), kModulesMax},
                        {"frames", profile.frames.size(), kFramesMax},
                        {"stacks", profile.stacks.size(), kStacksMax},
                        {"processes", profile.processes.size(), kProcessesMax},
                        {"threads", profile.threads.size(), kThreadsMax},
                        {"rows", profile.rows.size(), kRowsMax},
                        {"intervals", profile.timeline.size(), kIntervalsMax},
                        {"losses", profile.losses.size(), kLossesMax},
                        {"unresolved modules", profile.unresolved.size(), kUnresolvedMax},
                        {"options", profile.options.size(), kOptionsMax},
                        {"warnings", profile.warnings.size(), kWarningsMax}};
  for (const Size& size : sizes)
    if (size.size > size.max)
      return runtime_error(
          fmt::format("cannot encode the profile: {} {}, the limit is {}; record fewer processes "
                      "or for a shorter time",
                      size.size, size.table, size.max));
  if (!sums_fit(profile))
    return runtime_error(
        "cannot encode the profile: its times add up to more than 2^63 ns, a defect of the "
        "recorder; please report it");
  return {};
}

}  // namespace dwell
