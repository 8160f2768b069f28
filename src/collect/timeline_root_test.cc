// Single intervals from the probe on the running kernel, against the rows of the same threads.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "collect/drain.h"
#include "collect/timeline.h"
#include "collect/totals.h"
#include "probe/child_at_work.h"
#include "probe/doctor.h"

namespace dwell::collect {
namespace {

using probe::ChildAtWork;
using probe::nap;
using probe::Probe;
using probe::ProbeOptions;

constexpr int kNaps = 200;

void nap_often() {
  for (int i = 0; i < kNaps; ++i) nap(100'000);
}

struct Recorded {
  std::vector<dwell_interval_record> intervals;
  dwell_counter_cell received, dropped, sent, refused;
  SessionStats stats;
  Totals totals;
};

class TimelineRootTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reasons = probe::reasons_against(probe::examine_machine());
    if (!reasons.empty()) GTEST_SKIP() << "this machine cannot be recorded: " << reasons;
  }

  // A child that naps, recorded. Without `read` the rings are left alone until the end.
  static Recorded record(uint64_t min_ns, const TimelineLimits& limits, bool read) {
    ChildAtWork child(nap_often);
    ProbeOptions options;
    options.timeline_min_ns = min_ns;
    auto probe = Probe::load(options);
    EXPECT_TRUE(probe) << probe.error().message;
    auto timeline = Timeline::open(probe->maps().timeline, limits);
    EXPECT_TRUE(timeline) << timeline.error().message;
    auto drain = Drain::create(probe->maps());
    EXPECT_TRUE(probe->add_target(*probe::find_process(child.pid())));
    EXPECT_TRUE(probe->attach());
    EXPECT_TRUE(probe->open_window());
    nap(3'000'000);
    child.work();
    if (read) {
      EXPECT_TRUE((*timeline)->take());
    }
    EXPECT_TRUE(probe->close_window());
    EXPECT_TRUE((*timeline)->finish());
    Recorded recorded = {(*timeline)->intervals(),
                         (*timeline)->received(),
                         (*timeline)->dropped(),
                         {},
                         {},
                         (*timeline)->stats(),
                         Totals()};
    const auto counters = drain->read_counters();
    recorded.sent = (*counters)[DWELL_COUNT_TIMELINE];
    recorded.refused = (*counters)[DWELL_LOSS_TIMELINE_RING];
    Batch batch;
    for (int epoch = 0; epoch < 2; ++epoch) EXPECT_TRUE(drain->take_rows(batch));
    recorded.totals.add_rows(batch.rows);
    return recorded;
  }

  static dwell_counter_cell sum(const Totals& totals) {
    dwell_counter_cell cell = {};
    for (const auto& [key, row] : totals.rows()) {
      cell.count += row.count;
      cell.ns += row.blocked_ns + row.run_queue_ns;
    }
    return cell;
  }
};

TEST_F(TimelineRootTest, EveryIntervalOfTheRowsIsThereOnceAndInOrder) {
  const Recorded recorded = record(0, {}, true);
  std::map<dwell_row_key, dwell_row, bool (*)(const dwell_row_key&, const dwell_row_key&)> rows(
      [](const dwell_row_key& a, const dwell_row_key& b) {
        return std::memcmp(&a, &b, sizeof a) < 0;
      });
  uint64_t ended = 0;
  for (const dwell_interval_record& interval : recorded.intervals) {
    const uint64_t length = interval.blocked_ns + interval.run_queue_ns;
    EXPECT_GE(interval.start_ns, ended) << "of one thread: none begins before the last one ended";
    ended = interval.start_ns + length;
    dwell_row& row = rows[{interval.user_stack, interval.kernel_stack, interval.thread,
                           interval.state, interval.cause, interval.wait_class, interval.censored}];
    ++row.count;
    row.blocked_ns += interval.blocked_ns;
    row.run_queue_ns += interval.run_queue_ns;
    row.max_ns = std::max(row.max_ns, length);
  }
  EXPECT_GE(recorded.intervals.size(), size_t{kNaps});
  EXPECT_EQ(rows.size(), recorded.totals.rows().size());
  for (const auto& [key, row] : recorded.totals.rows()) {
    const dwell_row& mine = rows[key];
    EXPECT_EQ(mine.count, row.count);
    EXPECT_EQ(mine.blocked_ns, row.blocked_ns);
    EXPECT_EQ(mine.run_queue_ns, row.run_queue_ns);
    EXPECT_EQ(mine.max_ns, row.max_ns);
  }
  EXPECT_EQ(recorded.refused.count, 0u);
}

TEST_F(TimelineRootTest, ATinyRingLosesAndEveryCountAgrees) {
  const Recorded recorded = record(0, {.ring_bytes = 4096}, false);
  EXPECT_GT(recorded.refused.count, 0u);
  EXPECT_EQ(recorded.received.count + recorded.refused.count, recorded.sent.count);
  EXPECT_EQ(recorded.received.ns + recorded.refused.ns, recorded.sent.ns);
  EXPECT_EQ(recorded.sent.count, sum(recorded.totals).count) << "the rows have them all";
  EXPECT_EQ(recorded.sent.ns, sum(recorded.totals).ns);
  if (const auto lost = recorded.stats.rings.lost_exact) {
    EXPECT_EQ(*lost, recorded.refused.count) << "by the kernel's count";
  }
}

TEST_F(TimelineRootTest, BeyondTheLimitIntervalsAreDroppedAndCounted) {
  const Recorded recorded = record(0, {.intervals = 50}, true);
  EXPECT_EQ(recorded.intervals.size(), 50u);
  EXPECT_EQ(recorded.dropped.count + 50, recorded.sent.count);
  uint64_t kept_ns = 0;
  for (const dwell_interval_record& interval : recorded.intervals)
    kept_ns += interval.blocked_ns + interval.run_queue_ns;
  EXPECT_EQ(recorded.dropped.ns + kept_ns, recorded.sent.ns);
}

TEST_F(TimelineRootTest, AMinimumKeepsShortOnesOutButNotWhatTheWindowCutOff) {
  const Recorded recorded = record(3'600'000'000'000, {}, true);
  EXPECT_FALSE(recorded.intervals.empty()) << "the child waits for its word at both edges";
  for (const dwell_interval_record& interval : recorded.intervals) EXPECT_NE(interval.censored, 0);
  EXPECT_LT(recorded.sent.count, sum(recorded.totals).count);
}

}  // namespace
}  // namespace dwell::collect
