#include "python/line_table.h"

#include <gtest/gtest.h>

#include <string>

namespace dwell::python {
namespace {

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}
// The first byte of an entry.
int entry(int kind, int instructions) { return 0x80 | kind << 3 | (instructions - 1); }

TEST(LineTable, FollowsEachKindOfEntry) {
  const std::string table = bytes({entry(15, 1),           // no line
                                   entry(10, 2), 4,    9,  // the first line
                                   entry(0, 1),  0x12,     // the same, one byte of columns
                                   entry(12, 8), 0,    3,  // two further
                                   entry(13, 3), 0x0b,     // five back: the first bit is the sign
                                   entry(14, 1), 0x48, 0x03, 0x01, 1, 5,  // 100 on, in two digits
                                   entry(11, 1), 0,    0});               // one further
  EXPECT_EQ(line_of(table, 50, 0), 0u);
  EXPECT_EQ(line_of(table, 50, 1), 50u);
  EXPECT_EQ(line_of(table, 50, 2), 50u);
  EXPECT_EQ(line_of(table, 50, 3), 50u);
  EXPECT_EQ(line_of(table, 50, 4), 52u);
  EXPECT_EQ(line_of(table, 50, 11), 52u);
  EXPECT_EQ(line_of(table, 50, 12), 47u);
  EXPECT_EQ(line_of(table, 50, 14), 47u);
  EXPECT_EQ(line_of(table, 50, 15), 147u);
  EXPECT_EQ(line_of(table, 50, 16), 148u);
  EXPECT_EQ(line_of(table, 50, 17), 0u) << "behind the last entry";
}

TEST(LineTable, SaysNothingWhereTheBytesMakeNoSense) {
  EXPECT_EQ(line_of("", 50, 0), 0u);
  EXPECT_EQ(line_of(bytes({entry(13, 1)}), 50, 0), 50u) << "the change is missing: none";
  EXPECT_EQ(line_of(bytes({entry(13, 1), 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f}), 50, 0), 0u)
      << "far before the first line";
  EXPECT_EQ(line_of(bytes({entry(13, 1), 0x7e, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f}), 50, 0), 0u)
      << "far behind any";
  EXPECT_EQ(line_of(std::string(1000, '\x7f'), 50, 7), 0u) << "no entry begins there";
}

}  // namespace
}  // namespace dwell::python
