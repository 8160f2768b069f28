#include "comparison.h"

#include <fmt/format.h>

#include <map>

namespace dwell::simulation {
namespace {

constexpr size_t kMostDifferences = 5;

uint64_t distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

uint64_t sum_of(const dwell_books& b) {
  return b.running_ns + b.run_queue_ns + b.blocked_ns + b.censored_run_queue_ns +
         b.censored_blocked_ns + b.lost_ns;
}

Books plain(const dwell_books& b) {
  return {b.running_ns,           b.run_queue_ns,        b.blocked_ns,
          b.censored_run_queue_ns, b.censored_blocked_ns, b.intervals, b.blocked_intervals};
}

std::string text(const Books& b) {
  return fmt::format("run {} queue {} blocked {} censored {} + {} intervals {} of them blocked {}",
                     b.running_ns, b.run_queue_ns, b.blocked_ns, b.censored_run_queue_ns,
                     b.censored_blocked_ns, b.intervals, b.blocked_intervals);
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

}  // namespace

Comparison compare(const Scheduler& scheduler, const Told& told) {
  Comparison result;
  std::unordered_map<uint64_t, std::vector<const dwell_thread_record*>> by_start;
  by_start.reserve(told.records.size());
  for (const dwell_thread_record& record : told.records)
    by_start[record.start_boottime_ns].push_back(&record);
  uint64_t found_count = 0;
  for (const Life& life : scheduler.lives()) {
    ++result.lives;
    result.alive_ns += life.alive_ns();
    const dwell_thread_record* record = nullptr;
    for (const dwell_thread_record* candidate : by_start[life.start_boottime_ns])
      if (candidate->birth_ns == life.birth_ns) record = candidate;
    const auto differ = [&](const char* what) {
      if (result.differences.size() >= kMostDifferences) return;
      result.differences.push_back(fmt::format(
          "{}: thread {} from {} to {}: truth: {}; told: {}", what, life.start_boottime_ns,
          life.birth_ns, life.end_ns, text(life.books),
          record != nullptr ? fmt::format("{} lost {} flags {}", text(plain(record->books)),
                                          record->books.lost_ns, record->flags)
                            : "nothing"));
    };
    if (record == nullptr) {
      ++result.missing;
      differ("no record");
      continue;
    }
    ++found_count;
    const Books books = plain(record->books);
    result.running_off_ns += distance(books.running_ns, life.books.running_ns);
    const uint64_t residual = distance(sum_of(record->books), record->end_ns - record->birth_ns);
    result.residual_ns += residual;
    if (residual == 0 && record->end_ns == life.end_ns) ++result.sums_conserved;
    if (books == life.books && record->books.lost_ns == 0 && record->end_ns == life.end_ns)
      ++result.equal;
    else
      differ("different");
    if (rows_add_up(told, *record))
      ++result.rows_equal;
    else
      differ("rows do not add up");
  }
  result.unexpected = told.records.size() - found_count;
  return result;
}

}  // namespace dwell::simulation
