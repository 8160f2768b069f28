#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "export/export.h"
#include "export/golden.h"
#include "export/small_profile.h"
#include "export/text_layout.h"
#include "export/wait_groups.h"
#include "profile/random_profile.h"

namespace dwell {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Table, LooksLikeTheGoldenFile) {
  expect_golden("small.table.txt", table(small_profile()));
  expect_golden("small.source.table.txt", table(small_profile_with_source()));
}

TEST(Table, JoinsThreadsThatWaitForTheSame) {
  const std::vector<WaitGroup> groups = group_by_wait(small_profile(), View::kOffCpu);
  ASSERT_FALSE(groups.empty());
  EXPECT_EQ(groups[0].threads, 2u);
  EXPECT_EQ(groups[0].count, 203u);
  EXPECT_EQ(groups[0].time_ns, 16'520'000'000u);
  EXPECT_THAT(table(small_profile()), HasSubstr("server [1200] x 2 threads: epoll_wait"));
}

TEST(Table, RanksByTheTimeOfTheView) {
  const std::string text = table(small_profile(), {.view = View::kRunQueue});
  EXPECT_THAT(text, HasSubstr("of the time waiting for a CPU"));
  EXPECT_THAT(text, HasSubstr("   3.   5.000 ms"));
  EXPECT_THAT(text, Not(HasSubstr("worker_thread"))) << "never waited for a CPU";
}

TEST(Table, StaysInsideItsWidth) {
  for (const size_t width : {80, 100, 140}) {
    const std::string text =
        table(random_profile({.seed = 6, .hostile_names = true}), {.rows = 50, .width = width});
    const size_t limit = width < 100 ? 100 : width;  // the columns of numbers need 98
    for (size_t start = 0; start < text.size(); start = text.find('\n', start) + 1) {
      const std::string line = text.substr(start, text.find('\n', start) - start);
      EXPECT_LE(std::ranges::count_if(line, [](char c) { return (c & 0xc0) != 0x80; }), limit)
          << line;
    }
  }
}

TEST(Table, SaysWhatTheBooksAddUpTo) {
  const std::string text = table(small_profile());
  EXPECT_THAT(text, HasSubstr("residual 0 ns; schedstat agrees to 0.00 %"));
  Profile profile = small_profile();
  profile.threads[0].schedstat->on_cpu_ns += 20'000'000;
  EXPECT_THAT(table(profile), HasSubstr("schedstat agrees to 0.10 %"));
  profile.threads[0].schedstat->stretch_ns += 20'000'000;
  EXPECT_THAT(table(profile), HasSubstr("schedstat agrees to 0.00 %")) << "outside the window";
  profile.threads[0].schedstat->on_cpu_ns -= 40'000'000;
  EXPECT_THAT(table(profile), HasSubstr("schedstat agrees to 0.10 %")) << "less than we saw";
}

TEST(Table, ShowsOnlyCountersThatCounted) {
  const std::string text = table(small_profile());
  EXPECT_THAT(text, HasSubstr("user_stack_faults: 1 time:"));
  EXPECT_THAT(text, HasSubstr("Counted (docs/losses.md): early_wakeups 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("rows_full")));
  Profile profile = small_profile();
  profile.losses.clear();
  EXPECT_THAT(table(profile), HasSubstr("Losses: none"));
}

TEST(Table, LeavesOutTheMiddleOfADeepStack) {
  const std::string text = table(small_profile(), {.frames = 3});
  EXPECT_THAT(text, HasSubstr("... 2 frames more"));
  EXPECT_THAT(text, HasSubstr("main"));
}

TEST(Table, HasColourOnlyWhenAsked) {
  EXPECT_THAT(table(small_profile()), Not(HasSubstr("\x1b")));
  EXPECT_THAT(table(small_profile(), {.colour = true}), HasSubstr("\x1b[1m"));
}

TEST(TextLayout, ClipsByCodePoints) {
  EXPECT_EQ(clip("short", 10), "short");
  EXPECT_EQ(clip("0123456789", 10), "0123456789");
  EXPECT_EQ(clip("01234567890", 10), "01234567..");
  EXPECT_EQ(clip("\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9", 3), "\xc3\xa9..");
  EXPECT_EQ(pad("\xc3\xa9", 3), "\xc3\xa9  ");
}

TEST(TextLayout, WrapsBetweenWords) {
  EXPECT_EQ(wrap("- ", "one two three four", 4, 12), "- one two\n    three\n    four\n");
  EXPECT_EQ(wrap("", "", 2, 20), "\n");
}

}  // namespace
}  // namespace dwell
