#include "comparison.h"

#include <fmt/format.h>

namespace dwell::simulation {
namespace {

constexpr size_t kMostDifferences = 5;

uint64_t distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

Books plain(const dwell_books& b) {
  return {b.running_ns,          b.run_queue_ns, b.blocked_ns,       b.censored_run_queue_ns,
          b.censored_blocked_ns, b.intervals,    b.blocked_intervals};
}

std::string text(const Books& b) {
  return fmt::format("run {} queue {} blocked {} censored {} + {} intervals {} of them blocked {}",
                     b.running_ns, b.run_queue_ns, b.blocked_ns, b.censored_run_queue_ns,
                     b.censored_blocked_ns, b.intervals, b.blocked_intervals);
}

void add(Books& sum, const Books& b) {
  sum.running_ns += b.running_ns;
  sum.run_queue_ns += b.run_queue_ns;
  sum.blocked_ns += b.blocked_ns;
  sum.censored_run_queue_ns += b.censored_run_queue_ns;
  sum.censored_blocked_ns += b.censored_blocked_ns;
  sum.intervals += b.intervals;
  sum.blocked_intervals += b.blocked_intervals;
}

// As src/cli does: what the probe knows nothing of began when its thread did.
uint64_t birth_of(const dwell_thread_record& record) {
  const bool unseen = (record.flags & DWELL_THREAD_UNSEEN) != 0;
  return unseen ? std::max(record.birth_ns, record.start_boottime_ns) : record.birth_ns;
}

bool does_not_vouch(const dwell_thread_record& record) {
  return (record.flags & (DWELL_THREAD_UNSEEN | DWELL_THREAD_GAP)) != 0;
}

bool rows_add_up(const Told& told, const dwell_thread_record& record) {
  const auto found = told.rows.find(record.thread);
  const RowSums rows = found == told.rows.end() ? RowSums{} : found->second;
  const dwell_books& b = record.books;
  const uint64_t off = b.run_queue_ns + b.blocked_ns + b.censored_run_queue_ns +
                       b.censored_blocked_ns - b.filtered_ns - b.overflow_ns;
  return rows.blocked_ns + rows.run_queue_ns == off &&
         rows.count == b.intervals - b.filtered_intervals - b.overflow_intervals;
}

class Comparer {
 public:
  Comparer(const Scheduler& scheduler, const Told& told) : told_(told) {
    by_start_.reserve(told.records.size());
    for (const dwell_thread_record& record : told.records)
      if (birth_of(record) < record.end_ns) by_start_[record.start_boottime_ns].push_back(&record);
    for (const Life& life : scheduler.lives()) compare(life);
    for (const auto& [start, records] : by_start_) result_.unexpected += records.size();
  }
  const Comparison& result() const { return result_; }

 private:
  // The life's record, which is then used up.
  const dwell_thread_record* take(const Life& life) {
    const auto found = by_start_.find(life.start_boottime_ns);
    if (found == by_start_.end()) return nullptr;
    std::vector<const dwell_thread_record*>& records = found->second;
    for (size_t i = 0; i < records.size(); ++i) {
      const dwell_thread_record* record = records[i];
      if (record->birth_ns != life.birth_ns && (record->flags & DWELL_THREAD_UNSEEN) == 0) continue;
      records.erase(records.begin() + static_cast<ptrdiff_t>(i));
      return record;
    }
    return nullptr;
  }

  void differ(const char* what, const Life& life, const dwell_thread_record* record) {
    if (result_.differences.size() >= kMostDifferences) return;
    result_.differences.push_back(fmt::format(
        "{}: thread {} from {} to {}: truth: {}; told: {}", what, life.start_boottime_ns,
        life.birth_ns, life.end_ns, text(life.books),
        record == nullptr
            ? "nothing"
            : fmt::format("{} lost {} flags {} from {} to {}", text(plain(record->books)),
                          record->books.lost_ns, record->flags, record->birth_ns, record->end_ns)));
  }

  void compare(const Life& life) {
    ++result_.lives;
    result_.alive_ns += life.alive_ns();
    const dwell_thread_record* record = take(life);
    if (record == nullptr) {
      ++result_.missing;
      result_.missing_alive_ns += life.alive_ns();
      add(result_.missing_books, life.books);
      differ("no record", life, record);
      return;
    }
    const Books books = plain(record->books);
    const uint64_t alive = record->end_ns - birth_of(*record);
    uint64_t sum = books.sum_ns() + record->books.lost_ns;
    result_.lost_ns += record->books.lost_ns;
    if (does_not_vouch(*record) && sum < alive) {
      result_.lost_ns += alive - sum;
      sum = alive;
      ++result_.admitted;
    }
    result_.running_off_ns += distance(books.running_ns, life.books.running_ns);
    result_.phases_off_ns += distance(books.blocked_ns + books.censored_blocked_ns,
                                      life.books.blocked_ns + life.books.censored_blocked_ns);
    const bool same_end = record->end_ns == life.end_ns;
    if (sum == alive)
      ++result_.conserved;
    else
      differ("not conserved", life, record);
    if (books == life.books && sum == books.sum_ns() && same_end)
      ++result_.equal;
    else
      differ("different", life, record);
    if (rows_add_up(told_, *record))
      ++result_.rows_equal;
    else
      differ("rows do not add up", life, record);
  }

  const Told& told_;
  Comparison result_;
  std::unordered_map<uint64_t, std::vector<const dwell_thread_record*>> by_start_;
};

}  // namespace

Comparison compare(const Scheduler& scheduler, const Told& told) {
  return Comparer(scheduler, told).result();
}

}  // namespace dwell::simulation
