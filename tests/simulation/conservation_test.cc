#include <gtest/gtest.h>

#include "recording.h"

namespace dwell::simulation {
namespace {

Comparison record(const SchedulerOptions& options, uint64_t switches,
                  const ProbeLimits& limits = {}) {
  auto recording = Recording::create(options, limits);
  if (!recording) {
    ADD_FAILURE() << recording.error().message;
    return {};
  }
  return (*recording)->run(switches, 100'000);
}

std::string first(const Comparison& c) {
  std::string all;
  for (const std::string& d : c.differences) all += d + "\n";
  return all;
}

void expect_all_equal(const Comparison& c) {
  EXPECT_EQ(c.equal, c.lives) << first(c);
  EXPECT_EQ(c.rows_equal, c.lives);
  EXPECT_EQ(c.missing, 0u);
  EXPECT_EQ(c.unexpected, 0u);
  EXPECT_EQ(c.conserved, c.lives);
}

TEST(ConservationTest, TwoThreadsOnOneCpu) {
  const Comparison c = record({.cpus = 1, .threads = 2, .exits = 0}, 1000);
  EXPECT_GE(c.lives, 2u);
  expect_all_equal(c);
}

TEST(ConservationTest, ManyThreadsOnManyCpus) {
  const Comparison c = record({.cpus = 64, .threads = 20'000}, 2'000'000);
  EXPECT_GT(c.lives, 20'000u);
  expect_all_equal(c);
}

TEST(ConservationTest, InterruptsAnywhere) {
  const Comparison c =
      record({.cpus = 8, .threads = 500, .exits = 5000, .interrupts = 100'000}, 200'000);
  expect_all_equal(c);
}

TEST(ConservationTest, InterruptsAnywhereSeededWithStacks) {
  const Comparison c =
      record({.cpus = 8, .threads = 500, .seed = 2, .exits = 5000, .interrupts = 100'000}, 200'000);
  expect_all_equal(c);
}

TEST(ConservationTest, Hidden) {
  const Comparison c = record({.cpus = 8, .threads = 500, .hidden_switches = 20'000}, 200'000);
  std::printf(
      "hidden: lives %lu equal %lu conserved %lu rows %lu residual %lu running off %lu of %lu\n%s",
      c.lives, c.equal, c.conserved, c.rows_equal, c.lost_ns, c.running_off_ns, c.alive_ns,
      first(c).c_str());
}
TEST(ConservationTest, Missed) {
  const Comparison c = record({.cpus = 8, .threads = 500, .missed_wakings = 20'000}, 200'000);
  std::printf("missed: lives %lu equal %lu conserved %lu rows %lu residual %lu\n%s", c.lives,
              c.equal, c.conserved, c.rows_equal, c.lost_ns, first(c).c_str());
}
TEST(ConservationTest, Skew) {
  const Comparison c = record({.cpus = 8, .threads = 500, .backward_ns = 2'000}, 200'000);
  std::printf("skew: lives %lu equal %lu conserved %lu rows %lu residual %lu\n%s", c.lives, c.equal,
              c.conserved, c.rows_equal, c.lost_ns, first(c).c_str());
}
TEST(ConservationTest, RowsFull) {
  const Comparison c = record({.cpus = 8, .threads = 500}, 200'000, {.rows = 1000});
  expect_all_equal(c);
}
TEST(ConservationTest, StacksFull) {
  const Comparison c = record({.cpus = 8, .threads = 500}, 200'000, {.stacks = 100});
  expect_all_equal(c);
}
TEST(ConservationTest, ThreadsFull) {
  const Comparison c = record({.cpus = 8, .threads = 500}, 200'000, {.thread_ring_bytes = 4096});
  std::printf("threads: lives %lu equal %lu conserved %lu rows %lu residual %lu missing %lu\n",
              c.lives, c.equal, c.conserved, c.rows_equal, c.lost_ns, c.missing);
}
TEST(ConservationTest, StatesFull) {
  const Comparison c = record({.cpus = 8, .threads = 500}, 200'000, {.states = 400});
  std::printf(
      "states: lives %lu equal %lu conserved %lu rows %lu residual %lu missing %lu unexp %lu\n%s",
      c.lives, c.equal, c.conserved, c.rows_equal, c.lost_ns, c.missing, c.unexpected,
      first(c).c_str());
}
TEST(ConservationTest, Filtered) {
  const Comparison c = record({.cpus = 8, .threads = 500}, 200'000, {.min_ns = 50000});
  expect_all_equal(c);
}

TEST(ConservationTest, Execs) {
  const Comparison c =
      record({.cpus = 8, .threads = 2000, .execs = 300'000, .renames = 300'000}, 5'000);
  expect_all_equal(c);
}

}  // namespace
}  // namespace dwell::simulation
