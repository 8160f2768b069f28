#include "collect/totals.h"

#include <algorithm>

namespace dwell::collect {
namespace {

void add_row(dwell_row& sum, const dwell_row& row) {
  sum.count += row.count;
  sum.blocked_ns += row.blocked_ns;
  sum.run_queue_ns += row.run_queue_ns;
  sum.max_ns = std::max(sum.max_ns, row.max_ns);
  for (int i = 0; i < DWELL_HISTOGRAM_BUCKETS; ++i) sum.histogram[i] += row.histogram[i];
}

void add_books(dwell_books& sum, const dwell_books& books) {
  auto* to = reinterpret_cast<uint64_t*>(&sum);
  const auto* from = reinterpret_cast<const uint64_t*>(&books);
  for (size_t i = 0; i < sizeof(dwell_books) / sizeof(uint64_t); ++i) to[i] += from[i];
}

}  // namespace

size_t RowKeyHash::operator()(const dwell_row_key& key) const {
  uint64_t h = key.user_stack * 0x9e3779b97f4a7c15ull;
  h = (h ^ key.kernel_stack) * 0xc2b2ae3d27d4eb4full;
  h = (h ^ key.thread) * 0x165667b19e3779f9ull;
  h = (h ^ (uint64_t{key.state} << 32 | uint64_t{key.cause} << 16 | uint64_t{key.wait_class} << 8 |
            key.censored)) *
      0x9ddfea08eb382d69ull;
  return static_cast<size_t>(h ^ (h >> 32));
}

void Totals::add_rows(const std::vector<RawRow>& rows) {
  for (const RawRow& row : rows) {
    const auto found = rows_.find(row.key);
    if (found != rows_.end()) {
      add_row(found->second, row.value);
    } else if (rows_.size() < limits_.rows) {
      rows_.emplace(row.key, row.value);
    } else {
      add_row(overflow_[std::min<size_t>(row.key.wait_class, DWELL_CLASS_COUNT - 1)], row.value);
      dropped_rows_.count += row.value.count;
      dropped_rows_.ns += row.value.blocked_ns + row.value.run_queue_ns;
    }
  }
}

void Totals::add_threads(const std::vector<dwell_thread_record>& records) {
  for (const dwell_thread_record& record : records) {
    if (threads_.contains(record.thread))
      continue;  // a thread that died while the window was closed tells it twice
    if (threads_.size() < limits_.threads) {
      threads_.emplace(record.thread, record);
    } else {
      const uint64_t alive = record.end_ns - record.birth_ns;
      dropped_threads_.count++;
      dropped_threads_.ns += alive;
      add_lost_threads({.threads = 1, .alive_ns = alive, .books = record.books});
    }
  }
}

void Totals::add_overflow(const std::vector<dwell_row>& by_class) {
  for (size_t i = 0; i < overflow_.size() && i < by_class.size(); ++i)
    add_row(overflow_[i], by_class[i]);
}

void Totals::add_lost_threads(const dwell_lost_threads& lost) {
  lost_threads_.threads += lost.threads;
  lost_threads_.alive_ns += lost.alive_ns;
  add_books(lost_threads_.books, lost.books);
}

}  // namespace dwell::collect
