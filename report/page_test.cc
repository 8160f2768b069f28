#include "report/page.h"

#include <gtest/gtest.h>

#include <string>

namespace dwell {
namespace {

constexpr std::string_view kDataBlock =
    "<script id=\"dwell-data\" type=\"application/octet-stream\" "
    "data-encoding=\"gzip-base64\">@DWELL_DATA@</script>";

size_t occurrences(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size()))
    ++count;
  return count;
}

TEST(ReportPage, HasOnePlaceForTheData) {
  EXPECT_EQ(occurrences(report_page(), kDataBlock), 1u);
  EXPECT_EQ(occurrences(report_page(), "@DWELL_DATA@"), 1u);
}

TEST(ReportPage, IsWhole) {
  EXPECT_TRUE(report_page().starts_with("<!DOCTYPE html>"));
  EXPECT_TRUE(report_page().ends_with("</html>\n"));
}

TEST(ReportPage, ForbidsEveryFetchAndEveryForeignScript) {
  const std::string_view page = report_page();
  EXPECT_EQ(occurrences(page, "default-src 'none'; script-src 'sha256-"), 1u);
  EXPECT_EQ(occurrences(page, "unsafe-inline"), 0u);
  for (std::string_view reference : {"src=\"", "href=\"", "url(", "@import"})
    EXPECT_EQ(occurrences(page, reference), 0u) << reference;
}

}  // namespace
}  // namespace dwell
