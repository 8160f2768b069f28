// docs/runtime.md shows the very files that are built here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fd.h"

namespace dwell {
namespace {

std::string text_of(const std::string& path) {
  const auto text = read_file(path, 1 << 20);
  EXPECT_TRUE(text) << (text ? "" : text.error().message);
  return text.value_or("");
}

TEST(RuntimeDocument, ShowsTheExampleThatRuns) {
  const std::string root = DWELL_SOURCE_ROOT, page = text_of(root + "/docs/runtime.md");
  for (const char* file : {"testdata/short_packets.bpf.c", "short_packets_test.cc"}) {
    const std::string text = text_of(root + "/src/runtime/" + file);
    ASSERT_FALSE(text.empty());
    EXPECT_THAT(page, testing::HasSubstr("\n" + text + "```\n")) << file;
  }
}

}  // namespace
}  // namespace dwell
