#include "symbolize/perf_map.h"

#include <gtest/gtest.h>

namespace dwell::symbolize {
namespace {

std::string name(const PerfMap& map, uint64_t address) {
  const auto match = map.find(address);
  return match ? std::string(match->name) : "";
}

std::string name_in(const std::string& text, uint64_t address) {
  PerfMap map;
  map.append(text);
  return name(map, address);
}

TEST(PerfMapTest, NamesWithinTheSizeOfALine) {
  const std::string text = "1000 10 jit blob::run(int)\n2000 20 other\n";
  EXPECT_EQ(name_in(text, 0x1000), "jit blob::run(int)");
  EXPECT_EQ(name_in(text, 0x100f), "jit blob::run(int)");
  EXPECT_EQ(name_in(text, 0x1010), "");
  EXPECT_EQ(name_in(text, 0x0fff), "");
  EXPECT_EQ(name_in(text, 0x201f), "other");
}

TEST(PerfMapTest, ReadsWhatRuntimesWrite) {
  EXPECT_EQ(name_in("0x1000 0x10 with prefix\n", 0x1008), "with prefix");
  EXPECT_EQ(name_in("1000 10 dos line\r\n", 0x1008), "dos line");
  EXPECT_EQ(name_in("1000 10 a;b \x1b[31mred\n", 0x1008), "a;b [31mred");
  EXPECT_EQ(name_in("garbage\n1000 10 f\n", 0x1008), "f");
  EXPECT_EQ(name_in("", 0x1008), "");
  EXPECT_EQ(name_in("\n\n", 0x1008), "");
  EXPECT_EQ(name_in("1000 10\n", 0x1008), "");
  EXPECT_EQ(name_in("1000 0 f\n", 0x1000), "");
  EXPECT_EQ(name_in("fffffffffffffff0 ff f\n", 0xfffffffffffffff1), "");
  EXPECT_EQ(name_in("10000000000000000 10 f\n", 0), "");
}

TEST(PerfMapTest, WaitsForTheEndOfALine) {
  PerfMap map;
  map.append("1000 10 half");
  EXPECT_EQ(name(map, 0x1000), "");
  map.append(" written\n20");
  EXPECT_EQ(name(map, 0x1000), "half written");
  map.append("00 10 next\n");
  EXPECT_EQ(name(map, 0x2000), "next");
}

TEST(PerfMapTest, LaterLinesWinOverTheRangeTheyCover) {
  const std::string text = "1000 100 old\n1040 20 moved\n";
  EXPECT_EQ(name_in(text, 0x103f), "old");
  EXPECT_EQ(name_in(text, 0x1040), "moved");
  EXPECT_EQ(name_in(text, 0x105f), "moved");
  EXPECT_EQ(name_in(text, 0x1060), "old");
  EXPECT_EQ(name_in("1010 10 a\n1020 10 b\n1000 100 all\n", 0x1015), "all");
  EXPECT_EQ(name_in("1000 100 old\n1000 100 new\n", 0x1050), "new");
  PerfMap map;
  map.append("1000 100 old\n1040 20 moved\n");
  EXPECT_EQ(map.find(0x1070)->address, 0x1000u);  // offsets count from the function's start
}

TEST(PerfMapTest, SkipsAnEndlessLineAndGoesOn) {
  PerfMap map;
  for (int i = 0; i < 100; ++i) map.append(std::string(10'000, 'x'));
  map.append("\n1000 10 f\n");
  EXPECT_EQ(name(map, 0x1000), "f");
  EXPECT_LT(map.memory_bytes(), 10'000u);
}

TEST(PerfMapTest, StopsAtItsBound) {
  PerfMap map;
  const std::string long_name(60'000, 'n');
  for (uint64_t i = 0; i < 2000 && !map.full(); ++i)
    map.append(std::to_string(100000 + i * 16) + " 10 " + long_name + "\n");
  EXPECT_TRUE(map.full());
  EXPECT_LE(map.memory_bytes(), CodeRanges::kNamesMax + (1u << 20));
}

}  // namespace
}  // namespace dwell::symbolize
