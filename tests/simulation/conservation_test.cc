#include <gtest/gtest.h>

#include "comparison.h"

namespace dwell::simulation {
namespace {

// A recording of a simulated machine.
struct Recording {
  explicit Recording(const SchedulerOptions& options, const ProbeLimits& limits = {})
      : machine(options.cpus) {
    auto loaded = NativeProbe::load(machine, limits);
    if (!loaded) {
      ADD_FAILURE() << loaded.error().message;
      return;
    }
    probe = std::move(*loaded);
    scheduler = std::make_unique<Scheduler>(machine, probe.get(), options);
  }

  Comparison run(uint64_t switches, uint64_t between_drains = 100'000) {
    scheduler->open_window();
    for (uint64_t done = 0; done < switches; done += between_drains) {
      scheduler->run_until(scheduler->switches() + std::min(between_drains, switches - done));
      probe->take_rings(told);
      probe->take_rows(told);
    }
    scheduler->close_window(told);
    probe->take_rows(told);
    probe->take_rows(told);
    probe->take_rings(told);
    probe->take_sums(told);
    return compare(*scheduler, told);
  }

  runtime::Machine machine;
  std::unique_ptr<NativeProbe> probe;
  std::unique_ptr<Scheduler> scheduler;
  Told told;
};

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
  EXPECT_EQ(c.residual_ns, 0u);
}

TEST(ConservationTest, TwoThreadsOnOneCpu) {
  Recording recording({.cpus = 1, .threads = 2, .exits = 0});
  const Comparison c = recording.run(1000);
  EXPECT_GE(c.lives, 2u);
  expect_all_equal(c);
}

TEST(ConservationTest, ManyThreadsOnManyCpus) {
  Recording recording({.cpus = 64, .threads = 20'000});
  const Comparison c = recording.run(2'000'000);
  EXPECT_GT(c.lives, 20'000u);
  expect_all_equal(c);
}

}  // namespace
}  // namespace dwell::simulation
