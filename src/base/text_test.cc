#include "base/text.h"

#include <gtest/gtest.h>

namespace dwell {
inline namespace v0 {
namespace {

TEST(Printable, KeepsTextAndEscapesControlBytes) {
  EXPECT_EQ(printable("nginx: worker"), "nginx: worker");
  EXPECT_EQ(printable("a\nb\x1b[31m\x7f"), "a\\x0ab\\x1b[31m\\x7f");
  EXPECT_EQ(printable("h\xc3\xa9llo \xe2\x82\xac"), "h\xc3\xa9llo \xe2\x82\xac");
}

TEST(Printable, ReplacesInvalidUtf8) {
  EXPECT_EQ(printable("\xff"), "\xef\xbf\xbd");
  EXPECT_EQ(printable("\xc0\x80"), "\xef\xbf\xbd\xef\xbf\xbd") << "overlong NUL";
  EXPECT_EQ(printable("\xed\xa0\x80").find('\xed'), std::string::npos) << "surrogate";
  EXPECT_EQ(printable("\xe2\x82"), "\xef\xbf\xbd\xef\xbf\xbd") << "cut short";
  EXPECT_EQ(printable("\xc2\x9b"), "\\x9b")
      << "C1 control: starts an escape sequence on some terminals";
}

TEST(Printable, NamesCharactersThatTurnTheDirection) {
  EXPECT_EQ(printable("a\xe2\x80\xae"
                      "b"),
            "a\\u202eb");
  EXPECT_EQ(printable("\xe2\x81\xa6"), "\\u2066");
  EXPECT_EQ(printable("\xe2\x80\xa6"), "\xe2\x80\xa6") << "an ellipsis is no control";
}

TEST(Duration, ParsesUnitsAndRefusesTheRest) {
  EXPECT_EQ(parse_duration("10ms").value(), 10'000'000u);
  EXPECT_EQ(parse_duration("1.5s").value(), 1'500'000'000u);
  EXPECT_EQ(parse_duration("200us").value(), 200'000u);
  EXPECT_EQ(parse_duration("2m").value(), 120'000'000'000u);
  EXPECT_EQ(parse_duration("0").value(), 0u);
  for (const char* bad :
       {"10", "-1s", "", "s", "1x", "1e300s", "nan", "inf", "1 s", "9999999999999h"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST(Duration, FormatsWithFourDigits) {
  EXPECT_EQ(format_duration(0), "0 ns");
  EXPECT_EQ(format_duration(999), "999 ns");
  EXPECT_EQ(format_duration(1'500), "1.500 us");
  EXPECT_EQ(format_duration(12'345'678), "12.35 ms");
  EXPECT_EQ(format_duration(3'000'000'000), "3.000 s");
  EXPECT_EQ(format_duration(4'321'000'000'000), "4321 s");
}

TEST(ParseU32, TakesWholeNumbersOnly) {
  EXPECT_EQ(parse_u32("4294967295").value(), 4294967295u);
  for (const char* bad : {"4294967296", "-1", "1x", "", " 1"}) EXPECT_FALSE(parse_u32(bad)) << bad;
}

}  // namespace
}  // namespace v0
}  // namespace dwell
