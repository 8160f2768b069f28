#include "profile/profile.h"

#include <gtest/gtest.h>

#include "profile/random_profile.h"

namespace dwell {
namespace {

TEST(WaitClass, HasAStableNameForEveryValue) {
  EXPECT_STREQ(wait_class_name(WaitClass::kInterruptible), "interruptible");
  EXPECT_STREQ(wait_class_name(WaitClass::kIdleKthread), "idle");
  EXPECT_STREQ(wait_class_name(WaitClass::kPreemptedKernel), "preempted-kernel");
  EXPECT_STREQ(wait_class_name(WaitClass::kRunnable), "runnable");
  EXPECT_STREQ(wait_class_name(static_cast<WaitClass>(200)), "none");
}

TEST(WaitClass, IsBlockedFromInterruptibleToOther) {
  EXPECT_FALSE(is_blocked_class(WaitClass::kNone));
  EXPECT_TRUE(is_blocked_class(WaitClass::kInterruptible));
  EXPECT_TRUE(is_blocked_class(WaitClass::kOther));
  EXPECT_FALSE(is_blocked_class(WaitClass::kPreempted));
  EXPECT_FALSE(is_blocked_class(WaitClass::kRunnable));
}

TEST(ThreadTimes, SaysByHowMuchTheBooksDoNotBalance) {
  ThreadTimes times{.alive_ns = 100, .running_ns = 10, .run_queue_ns = 20, .blocked_ns = 30};
  EXPECT_EQ(times.residual_ns(), 40);
  times.lost_ns = 41;
  EXPECT_EQ(times.residual_ns(), -1);
}

TEST(Totals, AddsRowsAndThreads) {
  const Profile profile = random_profile({.seed = 5});
  const Totals sum = totals(profile);
  uint64_t rows_ns = 0;
  for (const Row& row : profile.rows) rows_ns += row.total_ns();
  EXPECT_EQ(sum.off_cpu_ns, rows_ns);
  EXPECT_EQ(sum.blocked_ns + sum.run_queue_ns, rows_ns);
  EXPECT_EQ(sum.threads.off_cpu_ns(), rows_ns + sum.threads.filtered_ns);
  EXPECT_EQ(sum.residual_ns, 0);
}

}  // namespace
}  // namespace dwell
