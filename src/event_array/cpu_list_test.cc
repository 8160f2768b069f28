#include "event_array/cpu_list.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace dwell {
inline namespace v0 {
namespace {

using Cpus = std::vector<uint32_t>;

TEST(CpuList, ParsesRangesWithHoles) {
  EXPECT_EQ(parse_cpu_list("0-3,5,8-11").value(), (Cpus{0, 1, 2, 3, 5, 8, 9, 10, 11}));
  EXPECT_EQ(parse_cpu_list("0").value(), Cpus{0});
  EXPECT_EQ(parse_cpu_list("0,2").value(), (Cpus{0, 2}));
  EXPECT_EQ(parse_cpu_list("0-1\n").value(), (Cpus{0, 1}));
  EXPECT_EQ(parse_cpu_list("").value(), Cpus{});
  EXPECT_EQ(parse_cpu_list("\n").value(), Cpus{});
  EXPECT_EQ(parse_cpu_list("3,1-2,2").value(), (Cpus{1, 2, 3}));
}

TEST(CpuList, RefusesWhatIsNoList) {
  for (const char* bad : {"a", "1-", "-1", "3-1", "0,", "0,,1", "1 2", "0-99999999", "4294967296"})
    EXPECT_FALSE(parse_cpu_list(bad)) << bad;
}

TEST(CpuList, FormatsAsItParses) {
  for (const char* text : {"", "0", "0-3,5,8-11", "0,2"})
    EXPECT_EQ(format_cpu_list(parse_cpu_list(text).value()), text);
}

TEST(CpuList, FindsTheCpuOnWhichItRuns) {
  const auto online = read_cpu_list("online");
  ASSERT_TRUE(online) << online.error().message;
  EXPECT_FALSE(online->empty());
  const auto possible = read_cpu_list("possible");
  ASSERT_TRUE(possible);
  EXPECT_TRUE(std::includes(possible->begin(), possible->end(), online->begin(), online->end()));
  EXPECT_FALSE(read_cpu_list("imaginary"));
}

}  // namespace
}  // namespace v0
}  // namespace dwell
