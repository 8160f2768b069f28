#include "profile/select.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "profile/document.h"
#include "profile/dwell_file.h"
#include "profile/random_profile.h"

namespace dwell {
namespace {

using testing::HasSubstr;

const Profile& everything() {
  static const Profile profile = random_profile({.seed = 21, .processes = 4, .threads = 20});
  return profile;
}

TEST(Select, KeepsOneProcessByNameOrPid) {
  const Profile by_name = select(everything(), {.processes = {"process1"}}).value();
  const Profile by_pid = select(everything(), {.processes = {"1001"}}).value();
  ASSERT_EQ(by_name.processes.size(), 1u);
  EXPECT_EQ(by_name.text(by_name.processes[0].comm), "process1");
  EXPECT_EQ(totals(by_name).off_cpu_ns, totals(by_pid).off_cpu_ns);
  uint64_t expected = 0;
  for (const Row& row : everything().rows)
    if (everything().threads[row.thread].process == 1) expected += row.total_ns();
  EXPECT_EQ(totals(by_name).off_cpu_ns, expected);
  EXPECT_EQ(totals(by_name).residual_ns, 0);
}

TEST(Select, PartsAddUpToTheWhole) {
  uint64_t by_class = 0, by_process = 0;
  for (int i = 1; i < kWaitClassCount; ++i)
    by_class +=
        totals(
            select(everything(), {.classes = {wait_class_name(static_cast<WaitClass>(i))}}).value())
            .off_cpu_ns;
  for (const char* pid : {"1000", "1001", "1002", "1003"})
    by_process += totals(select(everything(), {.processes = {pid}}).value()).off_cpu_ns;
  EXPECT_EQ(by_class, totals(everything()).off_cpu_ns);
  EXPECT_EQ(by_process, totals(everything()).off_cpu_ns);
}

TEST(Select, KeepsTheBooksWholeWhenRowsGo) {
  const Profile futex = select(everything(), {.causes = {"futex"}}).value();
  const Totals all = totals(everything());
  const Totals part = totals(futex);
  EXPECT_LT(part.off_cpu_ns, all.off_cpu_ns);
  EXPECT_EQ(part.threads.alive_ns, all.threads.alive_ns);
  EXPECT_EQ(part.off_cpu_ns + part.threads.filtered_ns, part.threads.off_cpu_ns());
  EXPECT_EQ(part.residual_ns, 0);
}

TEST(Select, KeepsTheIntervalsOfTheRowsItKeeps) {
  const Profile part =
      select(everything(), {.processes = {"process1"}, .causes = {"futex"}}).value();
  size_t expected = 0;
  for (const Interval& interval : everything().timeline)
    expected += everything().threads[interval.thread].process == 1 &&
                everything().text(interval.cause) == "futex";
  ASSERT_GT(expected, 0u);
  EXPECT_EQ(part.timeline.size(), expected);
  EXPECT_EQ(part.timeline_min_ns, everything().timeline_min_ns);
  for (const Interval& interval : part.timeline) EXPECT_EQ(part.text(interval.cause), "futex");
  EXPECT_TRUE(encode_document(part)) << "in order, and every index is good";
}

TEST(Select, CarriesNoStackThatNobodyUses) {
  const Profile part = select(everything(), {.threads = {"1003"}}).value();
  EXPECT_LT(part.stacks.size(), everything().stacks.size());
  std::set<uint32_t> used;
  for (const Row& row : part.rows) used.insert(row.stack);
  EXPECT_EQ(used.size(), part.stacks.size());
  EXPECT_TRUE(decode(encode(part).value())) << "a selection is a whole profile";
}

TEST(Select, SaysWhatItLeftOut) {
  const Profile part =
      select(everything(), {.processes = {"process1"}, .causes = {"futex", "read"}}).value();
  EXPECT_THAT(part.options, testing::IsSupersetOf({"report-process=process1", "report-cause=futex",
                                                   "report-cause=read"}));
}

TEST(Select, RefusesANameThatMatchesNothing) {
  for (const Selection& wrong :
       {Selection{.processes = {"proces1"}}, Selection{.threads = {"9"}},
        Selection{.classes = {"sleeping"}}, Selection{.causes = {"Futex"}}}) {
    const Result<Profile> part = select(everything(), wrong);
    ASSERT_FALSE(part);
    EXPECT_EQ(part.error().kind, Error::Kind::kUsage);
  }
  EXPECT_THAT(select(everything(), {.processes = {"proces1"}}).error().message,
              HasSubstr("--process proces1: no such process in this recording; it has process0"));
}

}  // namespace
}  // namespace dwell
