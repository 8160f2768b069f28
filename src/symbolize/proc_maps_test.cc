#include "symbolize/proc_maps.h"

#include <gtest/gtest.h>

namespace dwell::symbolize {
namespace {

TEST(Maps, GivesExecutableLinesWithTheirPaths) {
  const auto lines = parse_maps(
      "55d0c0000000-55d0c0001000 r--p 00000000 08:01 1311 /usr/bin/cat\n"
      "55d0c0001000-55d0c0005000 r-xp 00001000 08:01 1311                       /usr/bin/cat\n"
      "7ffc1b1f0000-7ffc1b1f2000 r-xp 00000000 00:00 0                          [vdso]\n"
      "7f0000000000-7f0000001000 rwxp 00000000 00:00 0\n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n");
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].start, 0x55d0c0001000u);
  EXPECT_EQ(lines[0].end, 0x55d0c0005000u);
  EXPECT_EQ(lines[0].page_offset, 0x1000u);
  EXPECT_EQ(lines[0].device_major, 8u);
  EXPECT_EQ(lines[0].device_minor, 1u);
  EXPECT_EQ(lines[0].inode, 1311u);
  EXPECT_EQ(lines[0].path, "/usr/bin/cat");
  EXPECT_EQ(lines[1].path, "[vdso]");
  EXPECT_EQ(lines[2].path, "");
  EXPECT_EQ(lines[3].path, "[vsyscall]");
}

TEST(Maps, KeepsBlanksMarksAndEscapesOfPaths) {
  const auto path = [](const std::string& text) {
    const auto lines = parse_maps("1000-2000 r-xp 00000000 08:01 7    " + text + "\n");
    return lines.empty() ? std::string("none") : lines[0].path;
  };
  EXPECT_EQ(path("/tmp/a b (deleted)"), "/tmp/a b (deleted)");
  EXPECT_EQ(path("/tmp/a  b"), "/tmp/a  b");
  EXPECT_EQ(path("/memfd:x (deleted)"), "/memfd:x (deleted)");
  EXPECT_EQ(path("/tmp/a\\012b"), "/tmp/a\\012b");
  EXPECT_EQ(unescape_newlines("/tmp/a\\012b"), "/tmp/a\nb");
  EXPECT_EQ(without_deleted_mark("/tmp/a b (deleted)"), "/tmp/a b");
  EXPECT_EQ(without_deleted_mark("/tmp/(deleted)"), "/tmp/(deleted)");
}

TEST(Maps, LeavesOutLinesThatMakeNoSense) {
  for (const char* text :
       {"", "\n", "x", "1000-2000", "1000-2000 r-xp", "2000-1000 r-xp 0 8:1 7 /a",
        "1000-2000 r-xp zz 08:01 7 /a", "1000 2000 r-xp 0 08:01 7 /a", "1000-2000 rx 0 08:01 7 /a",
        "fffffffffffffffff-1 r-xp 0 08:01 7 /a"})
    EXPECT_TRUE(parse_maps(text).empty()) << text;
  EXPECT_TRUE(parse_maps("1000-2000 r-xp 0 8:1 7 /" + std::string(5000, 'a')).empty());
}

TEST(Maps, TakesAnAnonymousHoleInAFileForItsMovedText) {
  const std::string before = "1000-2000 r-xp 00000000 08:01 7 /a\n";
  const std::string hole = "2000-4000 r-xp 00000000 00:00 0\n";
  const std::string after = "4000-5000 r-xp 00003000 08:01 7 /a\n";
  const auto lines = parse_maps(before + hole + after);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_TRUE(lines[1].moved_text);
  EXPECT_EQ(lines[1].path, "/a");
  EXPECT_EQ(lines[1].page_offset, 0x1000u);
  // Code of a JIT that merely lies between two files, or whose neighbours do not fit together.
  EXPECT_FALSE(parse_maps(before + hole + "4000-5000 r-xp 00003000 08:01 8 /b\n")[1].moved_text);
  EXPECT_FALSE(parse_maps(before + hole + "4000-5000 r-xp 00007000 08:01 7 /a\n")[1].moved_text);
  EXPECT_FALSE(parse_maps(before + "2000-3000 r-xp 00000000 00:00 0\n" + after)[1].moved_text);
}

}  // namespace
}  // namespace dwell::symbolize
