#include "collect/totals.h"

#include <gtest/gtest.h>

namespace dwell::collect {
namespace {

RawRow row(uint64_t thread, uint64_t blocked_ns, uint64_t run_queue_ns,
           uint8_t wait_class = DWELL_CLASS_INTERRUPTIBLE) {
  RawRow row = {};
  row.key.thread = thread;
  row.key.wait_class = wait_class;
  row.value.count = 1;
  row.value.blocked_ns = blocked_ns;
  row.value.run_queue_ns = run_queue_ns;
  row.value.max_ns = blocked_ns + run_queue_ns;
  row.value.histogram[3] = 1;
  return row;
}

dwell_thread_record record(uint64_t thread, uint64_t running_ns) {
  dwell_thread_record record = {};
  record.thread = thread;
  record.birth_ns = 1000;
  record.end_ns = 1000 + running_ns + 5;
  record.books.running_ns = running_ns;
  record.books.blocked_ns = 5;
  record.books.intervals = 1;
  return record;
}

dwell_row sum_of(const Totals& totals) {
  dwell_row sum = {};
  const auto add = [&](const dwell_row& row) {
    sum.count += row.count;
    sum.blocked_ns += row.blocked_ns;
    sum.run_queue_ns += row.run_queue_ns;
    sum.histogram[3] += row.histogram[3];
  };
  for (const auto& [key, value] : totals.rows()) add(value);
  for (const dwell_row& value : totals.overflow()) add(value);
  return sum;
}

TEST(Totals, MergesTheRowsOfAllEpochsByKey) {
  Totals totals;
  totals.add_rows({row(1, 100, 10), row(2, 7, 0)});
  totals.add_rows({row(1, 50, 1), row(1, 3, 3, DWELL_CLASS_IO)});
  ASSERT_EQ(totals.rows().size(), 3u);
  const dwell_row& merged = totals.rows().at(row(1, 0, 0).key);
  EXPECT_EQ(merged.count, 2u);
  EXPECT_EQ(merged.blocked_ns, 150u);
  EXPECT_EQ(merged.run_queue_ns, 11u);
  EXPECT_EQ(merged.max_ns, 110u) << "the longest, not the last";
  EXPECT_EQ(merged.histogram[3], 2u);
}

TEST(Totals, TellsKeysApartByEachOfTheirFields) {
  const RawRow base = row(1, 1, 0);
  std::vector<RawRow> rows(8, base);
  rows[1].key.user_stack = 9;
  rows[2].key.kernel_stack = 9;
  rows[3].key.thread = 9;
  rows[4].key.state = 9;
  rows[5].key.cause = 9;
  rows[6].key.wait_class = 9;
  rows[7].key.censored = DWELL_CENSORED_LEFT;
  Totals totals;
  totals.add_rows(rows);
  EXPECT_EQ(totals.rows().size(), rows.size());
}

TEST(Totals, ChargesWhatDoesNotFitToTheOverflowOfItsClass) {
  Totals totals({.rows = 2, .threads = 10});
  for (uint64_t thread = 0; thread < 10; ++thread)
    totals.add_rows({row(thread, 100, 1), row(thread, 0, 1000 + thread, DWELL_CLASS_PREEMPTED)});
  totals.add_rows({row(0, 100, 1)});  // still merged: its key is there
  EXPECT_EQ(totals.rows().size(), 2u);
  EXPECT_EQ(totals.overflow()[DWELL_CLASS_INTERRUPTIBLE].count, 9u);
  EXPECT_EQ(totals.overflow()[DWELL_CLASS_PREEMPTED].count, 9u);
  EXPECT_EQ(totals.overflow()[DWELL_CLASS_PREEMPTED].max_ns, 1009u);
  const dwell_row sum = sum_of(totals);
  EXPECT_EQ(sum.count, 21u);
  EXPECT_EQ(sum.histogram[3], 21u);
  EXPECT_EQ(sum.blocked_ns, 11u * 100);
  EXPECT_EQ(sum.run_queue_ns, 11u + 10u * 1000 + 45);
  EXPECT_EQ(totals.dropped_rows().count, 18u);
  EXPECT_EQ(totals.dropped_rows().ns, 9u * 101 + 9u * 1000 + 45);
}

TEST(Totals, AddsTheOverflowOfTheProbeToItsOwn) {
  Totals totals({.rows = 0, .threads = 0});
  totals.add_rows({row(1, 100, 1)});
  std::vector<dwell_row> probe(DWELL_CLASS_COUNT);
  probe[DWELL_CLASS_INTERRUPTIBLE] = row(0, 30, 2).value;
  totals.add_overflow(probe);
  EXPECT_EQ(totals.overflow()[DWELL_CLASS_INTERRUPTIBLE].count, 2u);
  EXPECT_EQ(totals.overflow()[DWELL_CLASS_INTERRUPTIBLE].blocked_ns, 130u);
  EXPECT_EQ(totals.dropped_rows().count, 1u) << "the probe counts its own";
}

TEST(Totals, KeepsAClassThatItDoesNotKnowWithinBounds) {
  Totals totals({.rows = 0, .threads = 0});
  totals.add_rows({row(1, 100, 1, 255)});
  EXPECT_EQ(sum_of(totals).count, 1u);
}

TEST(Totals, CountsAThreadOnceThatTellsItsEndTwice) {
  Totals totals;
  totals.add_threads({record(1, 10), record(2, 20)});
  dwell_thread_record again = record(1, 10);
  again.ended = DWELL_END_EXITED;
  totals.add_threads({again});
  EXPECT_EQ(totals.threads().size(), 2u);
  EXPECT_EQ(totals.threads().at(1).ended, DWELL_END_ALIVE) << "the first one counts";
  EXPECT_EQ(totals.lost_threads().threads, 0u);
}

TEST(Totals, FoldsThreadsThatDoNotFitIntoOneSum) {
  Totals totals({.rows = 10, .threads = 3});
  for (uint64_t thread = 0; thread < 10; ++thread) totals.add_threads({record(thread, thread)});
  totals.add_threads({record(0, 0)});  // told again: it was kept, so it is not folded
  EXPECT_EQ(totals.threads().size(), 3u);
  EXPECT_EQ(totals.lost_threads().threads, 7u);
  EXPECT_EQ(totals.lost_threads().books.running_ns, 3u + 4 + 5 + 6 + 7 + 8 + 9);
  EXPECT_EQ(totals.lost_threads().books.blocked_ns, 35u);
  EXPECT_EQ(totals.lost_threads().books.intervals, 7u);
  EXPECT_EQ(totals.lost_threads().alive_ns, 42u + 35u);
  EXPECT_EQ(totals.dropped_threads().count, 7u);
  EXPECT_EQ(totals.dropped_threads().ns, 42u + 35u);
}

TEST(Totals, AddsThreadsThatTheProbeFolded) {
  Totals totals;
  dwell_lost_threads lost = {.threads = 2, .alive_ns = 30, .books = {}};
  lost.books.running_ns = 20;
  lost.books.overflow_intervals = 4;  // the last field
  totals.add_lost_threads(lost);
  totals.add_lost_threads(lost);
  EXPECT_EQ(totals.lost_threads().threads, 4u);
  EXPECT_EQ(totals.lost_threads().alive_ns, 60u);
  EXPECT_EQ(totals.lost_threads().books.running_ns, 40u);
  EXPECT_EQ(totals.lost_threads().books.overflow_intervals, 8u);
  EXPECT_EQ(totals.dropped_threads().count, 0u) << "the probe counts its own";
}

}  // namespace
}  // namespace dwell::collect
