// The probe's books under a random scheduler, against the simulator's own. Where something is lost,
// what is missing stands in a counter with a name.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "recording.h"

namespace dwell::simulation {
namespace {

struct Recorded {
  std::unique_ptr<Recording> recording;
  Comparison c;

  Told& told() { return recording->told(); }
  const dwell_counter_cell& counter(dwell_counter which) { return told().counters[which]; }
};

Recorded record(const SchedulerOptions& options, uint64_t switches,
                const ProbeLimits& limits = {}) {
  auto recording = Recording::create(options, limits);
  if (!recording) {
    ADD_FAILURE() << recording.error().message;
    std::abort();
  }
  const Comparison c = (*recording)->run(switches, /*between_drains=*/50'000);
  return {std::move(*recording), c};
}

std::string differences(const Comparison& c) {
  std::string all;
  for (const std::string& difference : c.differences) all += difference + "\n";
  return all;
}

// To the nanosecond, field by field, life by life, class by class.
void expect_all_equal(Recorded& recorded) {
  const Comparison& c = recorded.c;
  EXPECT_GT(c.lives, 0u);
  EXPECT_EQ(c.equal, c.lives) << differences(c);
  EXPECT_EQ(c.conserved, c.lives);
  EXPECT_EQ(c.rows_equal, c.lives);
  EXPECT_EQ(c.unexpected, 0u);
  EXPECT_EQ(recorded.counter(DWELL_COUNT_CLOCK_ANOMALY).count, 0u);
  EXPECT_EQ(recorded.counter(DWELL_LOSS_MISSED_SWITCH_OUT).count, 0u);
  if (recorded.counter(DWELL_COUNT_FILTERED).count != 0) return;  // not in the rows of a class
  for (uint8_t i = 0; i < DWELL_CLASS_COUNT; ++i) {
    const RowSums &told = recorded.told().by_class[i],
                  &truth = recorded.recording->scheduler().truth_of_class(i);
    EXPECT_EQ(told.blocked_ns, truth.blocked_ns) << "class " << int{i};
    EXPECT_EQ(told.run_queue_ns, truth.run_queue_ns) << "class " << int{i};
    EXPECT_EQ(told.count, truth.count) << "class " << int{i};
  }
}

TEST(ConservationTest, TwoThreadsOnOneCpu) {
  Recorded recorded = record({.cpus = 1, .threads = 2, .exits = 0}, 1000);
  expect_all_equal(recorded);
}

TEST(ConservationTest, ManyThreadsOnManyCpus) {
  Recorded recorded = record({.cpus = 64, .threads = 20'000}, 2'000'000);
  EXPECT_GT(recorded.c.lives, 20'000u);
  EXPECT_GT(recorded.recording->scheduler().executed(), 100u);
  EXPECT_GT(recorded.counter(DWELL_COUNT_EARLY_WAKEUP).count, 1000u);
  expect_all_equal(recorded);
}

TEST(ConservationTest, TheBuildForRawTracepoints) {
  Recorded recorded = record({.cpus = 8, .threads = 500}, 50'000, {.raw = true});
  expect_all_equal(recorded);
}

TEST(ConservationTest, ThreadsWithoutAnEventUntilTheyExecute) {
  Recorded recorded =
      record({.cpus = 4000, .threads = 9000, .execs = 300'000, .renames = 300'000}, 10'000);
  expect_all_equal(recorded);
}

class InterruptedTest : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, InterruptedTest, testing::Range<uint64_t>(1, 21));

// Iterators are interrupted by anything, also on their own CPU; tracepoints by wake-ups.
TEST_P(InterruptedTest, BooksAreEqual) {
  Recorded recorded = record({.cpus = 6,
                              .threads = 200,
                              .seed = GetParam(),
                              .exits = 5000,
                              .execs = 5000,
                              .renames = 5000,
                              .interrupts = 100'000},
                             20'000);
  EXPECT_EQ(recorded.recording->probe().recursion_misses(), 0u);
  expect_all_equal(recorded);
}

TEST(ConservationTest, EveryStackIsTheOneItWas) {
  auto recording = Recording::create({.cpus = 8, .threads = 300, .seed = 2}, {});
  ASSERT_TRUE(recording);
  Told& told = (*recording)->told();
  told.keep_stacks = true;
  (*recording)->run(100'000, 10'000);
  std::map<std::vector<uint64_t>, uint64_t> user, kernel;
  for (const auto& [hash, count] : told.user_stack_counts) user[told.stacks[hash]] += count;
  for (const auto& [hash, count] : told.kernel_stack_counts) kernel[told.stacks[hash]] += count;
  uint64_t unnamed = user[{}] + kernel[{}], blocked = 0;
  for (uint32_t v = 0; v < kStackVariants; ++v) {
    const uint64_t truth = (*recording)->scheduler().stack_counts()[v];
    blocked += truth;
    const auto frames = kernel_frames(v);
    EXPECT_LE(user[user_frames(v)], truth) << "variant " << v;
    EXPECT_EQ((kernel[{frames.begin(), frames.end()}]), truth) << "variant " << v;
  }
  EXPECT_GT(blocked, 50'000u);
  EXPECT_LT(unnamed, blocked / 10) << "kernel threads have no user stack";
}

TEST(ConservationTest, RowsThatFindNoRoomAreInTheOverflow) {
  Recorded recorded = record({.cpus = 8, .threads = 500}, 200'000, {.rows = 1000});
  expect_all_equal(recorded);
  const RowSums& overflow = recorded.told().overflow;
  EXPECT_GT(overflow.count, 100'000u);
  EXPECT_EQ(overflow.count, recorded.counter(DWELL_LOSS_ROWS_FULL).count);
  EXPECT_EQ(overflow.blocked_ns + overflow.run_queue_ns, recorded.counter(DWELL_LOSS_ROWS_FULL).ns);
}

TEST(ConservationTest, StacksThatFindNoRoomAreCounted) {
  Recorded recorded = record({.cpus = 8, .threads = 500}, 200'000, {.stacks = 100});
  expect_all_equal(recorded);
  EXPECT_GT(recorded.counter(DWELL_LOSS_USER_STACKS_FULL).count, 10'000u);
}

TEST(ConservationTest, StacksThatFindTheRingFullAreSentAgain) {
  Recorded recorded = record({.cpus = 8, .threads = 500}, 200'000, {.stack_ring_bytes = 4096});
  expect_all_equal(recorded);
  EXPECT_GT(recorded.counter(DWELL_COUNT_STACK_RING_FULL).count, 1000u);
}

TEST(ConservationTest, WhatAFilterKeepsOutIsInTheBooks) {
  Recorded recorded = record({.cpus = 8, .threads = 500}, 200'000, {.min_ns = 5'000'000});
  expect_all_equal(recorded);
  uint64_t filtered_ns = 0;
  for (const dwell_thread_record& record : recorded.told().records)
    filtered_ns += record.books.filtered_ns;
  EXPECT_GT(filtered_ns, 0u);
  EXPECT_EQ(filtered_ns, recorded.counter(DWELL_COUNT_FILTERED).ns);
}

TEST(ConservationTest, ThreadsWhoseRecordsFindNoRoomAreInOneSum) {
  Recorded recorded = record({.cpus = 8, .threads = 500}, 200'000, {.thread_ring_bytes = 4096});
  const Comparison& c = recorded.c;
  const dwell_lost_threads& lost = recorded.told().lost_threads;
  EXPECT_EQ(c.equal + c.missing, c.lives) << differences(c);
  EXPECT_GT(c.missing, 100u);
  EXPECT_EQ(lost.threads, c.missing);
  EXPECT_EQ(lost.alive_ns, c.missing_alive_ns);
  EXPECT_EQ(lost.books.running_ns, c.missing_books.running_ns);
  EXPECT_EQ(lost.books.run_queue_ns, c.missing_books.run_queue_ns);
  EXPECT_EQ(lost.books.blocked_ns, c.missing_books.blocked_ns);
  EXPECT_EQ(lost.books.intervals, c.missing_books.intervals);
  EXPECT_EQ(lost.threads, recorded.counter(DWELL_LOSS_THREAD_RECORDS).count);
  EXPECT_EQ(lost.alive_ns, recorded.counter(DWELL_LOSS_THREAD_RECORDS).ns);
}

// A thread without state is lost as a whole; if it gets one later, the part before.
TEST(ConservationTest, ThreadsWithoutStateAreLostAndSaySo) {
  Recorded recorded =
      record({.cpus = 8, .threads = 500, .execs = 0, .renames = 0}, 200'000, {.states = 400});
  const Comparison& c = recorded.c;
  EXPECT_EQ(c.conserved + c.missing, c.lives) << differences(c);
  EXPECT_EQ(c.equal + c.admitted + c.missing, c.lives) << differences(c);
  EXPECT_GT(c.admitted, 50u);
  EXPECT_GT(c.lost_ns, 0u);
  EXPECT_GT(c.missing, 0u) << "threads that ended without ever having a state";
  EXPECT_GT(recorded.counter(DWELL_LOSS_STATE_FULL).count, c.missing);
  EXPECT_EQ(c.unexpected, 0u);
}

// Some kernels run no program at some switches. The sums hold; what was off the CPU and cannot be
// named is lost, and counted.
TEST(ConservationTest, HiddenSwitchesAreWorkedOutOrLost) {
  Recorded recorded = record(
      {.cpus = 8, .threads = 500, .exits = 0, .execs = 0, .renames = 0, .hidden_switches = 20'000},
      200'000);
  const Comparison& c = recorded.c;
  EXPECT_GT(recorded.recording->scheduler().hidden_switches(), 2000u);
  EXPECT_EQ(c.conserved, c.lives) << differences(c);
  EXPECT_EQ(c.rows_equal, c.lives);
  EXPECT_EQ(c.missing, 0u);
  EXPECT_GT(recorded.counter(DWELL_COUNT_MISSED_SWITCH_IN).count, 1000u);
  EXPECT_GT(recorded.counter(DWELL_LOSS_MISSED_SWITCH_OUT).count, 1000u);
  EXPECT_EQ(c.lost_ns, recorded.counter(DWELL_LOSS_MISSED_SWITCH_OUT).ns);
  // A thread that came on and left, neither told, is found out by the scheduler's own counts, but
  // for what it did between the start of the window and its first event.
  EXPECT_LT(c.running_off_ns, c.alive_ns / 1'000'000);
}

// Who executes or renames itself runs, whether its return to the CPU was told or not.
TEST(ConservationTest, ALifeBeginsThoughTheSwitchInWasHidden) {
  Recorded recorded = record({.cpus = 8,
                              .threads = 500,
                              .exits = 0,
                              .execs = 5000,
                              .renames = 5000,
                              .hidden_switches = 20'000},
                             200'000);
  const Comparison& c = recorded.c;
  EXPECT_GT(recorded.recording->scheduler().executed(), 100u);
  EXPECT_GT(recorded.recording->scheduler().renamed(), 100u);
  EXPECT_EQ(c.missing, 0u) << differences(c);
  EXPECT_EQ(c.unexpected, 0u);
  EXPECT_EQ(c.conserved, c.lives) << differences(c);
  EXPECT_EQ(c.rows_equal, c.lives);
}

// Its state goes with it: there is nothing left to tell.
TEST(ConservationTest, AThreadWhoseLastSwitchIsHiddenIsNotTold) {
  Recorded recorded = record(
      {.cpus = 8, .threads = 500, .execs = 0, .renames = 0, .hidden_switches = 20'000}, 200'000);
  const Comparison& c = recorded.c;
  EXPECT_GT(c.missing, 0u);
  EXPECT_LE(c.missing, recorded.recording->scheduler().hidden_exits());
  EXPECT_EQ(c.conserved + c.missing, c.lives) << differences(c);
}

TEST(ConservationTest, MissedWakingsAreToldAsBlocked) {
  Recorded recorded =
      record({.cpus = 8, .threads = 500, .cancelled_sleeps = 0, .missed_wakings = 20'000}, 200'000);
  const Comparison& c = recorded.c;
  EXPECT_EQ(c.conserved, c.lives) << differences(c);
  EXPECT_EQ(c.rows_equal, c.lives);
  EXPECT_EQ(c.running_off_ns, 0u);
  uint64_t open_at_the_end_ns = 0;  // those may still be about to be woken, and are not counted
  for (const dwell_thread_record& record : recorded.told().records)
    if (record.ended == DWELL_END_ALIVE) open_at_the_end_ns += record.books.censored_blocked_ns;
  EXPECT_GT(c.phases_off_ns, 0u);
  EXPECT_LE(c.phases_off_ns, recorded.counter(DWELL_COUNT_MISSED_WAKEUP).ns + open_at_the_end_ns);
}

TEST(ConservationTest, ClocksOfCpusMayDiffer) {
  Recorded recorded = record({.cpus = 8, .threads = 500, .backward_ns = 2000}, 200'000);
  const Comparison& c = recorded.c;
  EXPECT_EQ(c.conserved, c.lives) << differences(c);
  EXPECT_EQ(c.rows_equal, c.lives);
  EXPECT_EQ(c.missing, 0u);
  EXPECT_GT(recorded.counter(DWELL_COUNT_CLOCK_ANOMALY).ns, 0u);
  EXPECT_LE(c.running_off_ns, recorded.counter(DWELL_COUNT_CLOCK_ANOMALY).ns);
}

}  // namespace
}  // namespace dwell::simulation
