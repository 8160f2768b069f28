#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "export/export.h"
#include "export/golden.h"
#include "export/reading.h"
#include "export/small_profile.h"
#include "profile/profile_builder.h"
#include "profile/random_profile.h"

namespace dwell {
namespace {

using testing::HasSubstr;

// The folded line of one stack with one frame of this name in one process of that name.
std::string line_of(const std::string& process, const std::string& function) {
  ProfileBuilder b;
  const uint32_t module = b.module("", "", ModuleKind::kUnknown);
  const uint32_t frame = b.frame({.function = b.string(function), .module = module});
  const uint32_t p = b.process({.pid = 1, .comm = b.string(process)});
  const uint32_t t = b.thread(
      {.process = p, .tid = 1, .comm = b.string("t"), .times = {}, .schedstat = std::nullopt});
  b.add({.thread = t, .stack = b.stack({&frame, 1}, true, false), .count = 1, .blocked_ns = 77});
  return folded(std::move(b).finish());
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t start = 0; start < text.size(); start = text.find('\n', start) + 1)
    lines.push_back(text.substr(start, text.find('\n', start) - start));
  return lines;
}

TEST(Folded, LooksLikeTheGoldenFiles) {
  expect_golden("small.folded", folded(small_profile()));
  expect_golden("small.run-queue.folded", folded(small_profile(), {.view = View::kRunQueue}));
  expect_golden("small.wall.folded", folded(small_profile(), {.wall = true}));
  expect_golden("small.source.folded", folded(small_profile_with_source()));
}

TEST(Folded, ReplacesWhatWouldSplitALine) {
  EXPECT_EQ(line_of("p", "std::map<a;b>"), "p;t;std::map<a:b> 77\n");
  EXPECT_EQ(line_of("two\nlines", "a\tb"), "two?lines;t;a?b 77\n");
  EXPECT_EQ(line_of("p", "\xff"), "p;t;\xef\xbf\xbd 77\n");
}

TEST(Folded, KeepsNumbersAndBlanksAtTheEndOfNamesOutOfTheCount) {
  EXPECT_EQ(line_of("p", "loop 12"), "p;t;loop_12 77\n");
  EXPECT_EQ(line_of("p", "loop 1.5"), "p;t;loop_1.5 77\n");
  EXPECT_EQ(line_of("p", "loop  12"), "p;t;loop__12 77\n");
  EXPECT_EQ(line_of("p", "12"), "p;t;12 77\n");
  EXPECT_EQ(line_of("p", " blanks  "), "p;t;_blanks__ 77\n");
  EXPECT_EQ(line_of("p", "operator new"), "p;t;operator new 77\n");
}

TEST(Folded, NamesWhatHasNoName) {
  EXPECT_EQ(line_of("", "f"), "[unnamed];t;f 77\n");
  EXPECT_EQ(line_of("#p", "f"), "?p;t;f 77\n") << "some readers skip lines that begin with #";
  EXPECT_EQ(line_of("p", ""), "p;t;[unknown]+0x0 77\n");
}

TEST(Folded, CutsANameOfAMegabyte) {
  EXPECT_LT(line_of("p", std::string(1 << 20, 'x')).size(), 5000u);
}

// Whether a stack ends in a blank and a number, with or without decimals: flamegraph.pl takes the
// last two numbers of a line for the values of a differential profile.
bool ends_in_a_second_value(std::string_view stack) {
  const size_t number = stack.find_last_not_of("0123456789.") + 1;
  return number < stack.size() && number > 0 && stack[number - 1] == ' ';
}

TEST(Folded, IsReadByFlamegraphRulesWithoutAnIgnoredLine) {
  EXPECT_TRUE(ends_in_a_second_value("p;t;loop 12"));
  EXPECT_FALSE(ends_in_a_second_value("p;t;loop12"));
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Profile profile = random_profile({.seed = seed, .frames = 80, .hostile_names = true});
    for (const std::string& line : lines_of(folded(profile))) {
      const std::string stack = line.substr(0, line.rfind(' '));
      EXPECT_FALSE(ends_in_a_second_value(stack)) << stack;
      EXPECT_NE(stack.back(), ' ') << stack;
    }
  }
}

TEST(Folded, IsSortedAndUniqueWithoutEmptyLines) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const std::string text = folded(random_profile({.seed = seed, .hostile_names = seed > 5}));
    const std::vector<std::string> lines = lines_of(text);
    EXPECT_TRUE(std::ranges::is_sorted(lines));
    std::vector<std::string> stacks;
    for (const std::string& line : lines) stacks.push_back(line.substr(0, line.rfind(' ')));
    std::ranges::sort(stacks);
    EXPECT_EQ(std::ranges::adjacent_find(stacks), stacks.end());
    for (const FoldedLine& line : parse_folded(text)) EXPECT_GT(line.ns, 0u);
  }
}

TEST(Folded, GivesCutStacksOneCommonRoot) {
  EXPECT_THAT(folded(small_profile()), HasSubstr("server;server;[truncated];"));
  Profile says_so_itself = small_profile();
  for (Frame& frame : says_so_itself.frames)
    if (frame.kind == FrameKind::kPlaceholder) {
      says_so_itself.strings.push_back("[truncated]");
      frame.function = static_cast<StringId>(says_so_itself.strings.size() - 1);
    }
  EXPECT_THAT(folded(says_so_itself), HasSubstr("server;server;[truncated];render_[j] 5000000"));
}

}  // namespace
}  // namespace dwell
