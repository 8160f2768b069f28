#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "export/export.h"
#include "export/gzip.h"
#include "export/reading.h"
#include "export/small_profile.h"

namespace dwell {
namespace {

const std::string kElement =
    "<script id=\"dwell-data\" type=\"application/octet-stream\" data-encoding=\"gzip-base64\">"
    "@DWELL_DATA@</script>";

std::string decode_base64(const std::string& text) {
  const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(alphabet.find(c));
    held += 6;
    if (held < 8) continue;
    held -= 8;
    out += static_cast<char>(bits >> held & 0xff);
  }
  return out;
}

TEST(Html, CarriesTheJsonDocument) {
  const std::string page = html(small_profile(), "<html>" + kElement + "</html>").value();
  const size_t start = page.find("gzip-base64\">") + 13;
  const std::string data = page.substr(start, page.find('<', start) - start);
  EXPECT_EQ(gunzip(decode_base64(data)), json(small_profile()));
  EXPECT_THAT(page, testing::EndsWith("</script></html>"));
}

TEST(Html, RefusesAPageWithoutOneDataElement) {
  EXPECT_FALSE(html(small_profile(), ""));
  EXPECT_FALSE(html(small_profile(), "<html>@DWELL_DATA@</html>"));
  EXPECT_FALSE(html(small_profile(), kElement + kElement));
}

TEST(Base64, PadsToWholeGroups) {
  EXPECT_EQ(encode_base64(""), "");
  EXPECT_EQ(encode_base64("f"), "Zg==");
  EXPECT_EQ(encode_base64("fo"), "Zm8=");
  EXPECT_EQ(encode_base64("foo"), "Zm9v");
  EXPECT_EQ(encode_base64("\xff\xfe\xfd\xfc"), "//79/A==");
}

TEST(Gzip, GivesBackLongAndShortInput) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{65'536}, size_t{3'000'000}}) {
    std::string bytes(size, '\0');
    uint32_t state = 1;
    for (char& c : bytes) c = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
    EXPECT_EQ(gunzip(compress_gzip(bytes).value()), bytes);
  }
}

}  // namespace
}  // namespace dwell
