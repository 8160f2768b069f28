// Records of a jitdump, made by hand: what names they give, in pieces, and damaged.
#include "symbolize/jit_dump.h"

#include <gtest/gtest.h>

#include "symbolize/jit_dump_writer.h"

namespace dwell::symbolize {
namespace {

std::string name(const JitDump& dump, uint64_t address) {
  const auto match = dump.find(address);
  return match ? std::string(match->name) : "";
}

JitDump read(const std::string& bytes) {
  JitDump dump;
  dump.append(bytes);
  return dump;
}

TEST(JitDumpTest, NamesLoadedCode) {
  const JitDump dump = read(JitDumpWriter().load(1, 0x1000, 0x40, "run(int)").bytes());
  EXPECT_EQ(name(dump, 0x0fff), "");
  EXPECT_EQ(name(dump, 0x1000), "run(int)");
  EXPECT_EQ(name(dump, 0x103f), "run(int)");
  EXPECT_EQ(name(dump, 0x1040), "");
}

TEST(JitDumpTest, FollowsCodeThatMoves) {
  const JitDump dump = read(JitDumpWriter()
                                .load(1, 0x1000, 0x40, "first")
                                .load(2, 0x2000, 0x40, "second")
                                .move(2, 0x2000, 0x3000, 0x40)
                                .move(1, 0x1000, 0x2000, 0x40)
                                .move(7, 0x1000, 0x5000, 0x40)  // never loaded
                                .bytes());
  EXPECT_EQ(name(dump, 0x3010), "second");
  EXPECT_EQ(name(dump, 0x2010), "first");
  // Stacks from before the move lie here.
  EXPECT_EQ(name(dump, 0x1010), "first");
  EXPECT_EQ(name(dump, 0x5010), "");
}

TEST(JitDumpTest, BelievesTheLaterOfTwoRecords) {
  const JitDump dump =
      read(JitDumpWriter().load(1, 0x1000, 0x100, "old").load(2, 0x1040, 0x20, "new").bytes());
  EXPECT_EQ(name(dump, 0x1030), "old");
  EXPECT_EQ(name(dump, 0x1050), "new");
  EXPECT_EQ(name(dump, 0x1060), "old");
}

TEST(JitDumpTest, SkipsLinesUnwindDataAndWhatItDoesNotKnow) {
  const JitDump dump = read(JitDumpWriter()
                                .record(2, std::string(100, 'l'))
                                .record(4, std::string(33, 'u'))
                                .record(99, "")
                                .load(1, 0x1000, 0x40, "f")
                                .bytes());
  EXPECT_EQ(name(dump, 0x1000), "f");
  EXPECT_EQ(dump.damage(), "");
}

TEST(JitDumpTest, EndsAtTheClosingRecord) {
  const JitDump dump =
      read(JitDumpWriter().record(3, "").load(1, 0x1000, 0x40, "after the end").bytes());
  EXPECT_EQ(name(dump, 0x1000), "");
  EXPECT_TRUE(dump.closed());
  EXPECT_TRUE(dump.full());
}

// As it is followed: from next_offset() on, the end cut off anywhere.
TEST(JitDumpTest, WaitsForTheRestOfARecord) {
  const std::string bytes = JitDumpWriter()
                                .load(1, 0x1000, 0x40, "first")
                                .move(1, 0x1000, 0x2000, 0x40)
                                .load(2, 0x3000, 0x40, "second")
                                .bytes();
  JitDump dump;
  for (size_t written = 0; written <= bytes.size(); ++written) {
    if (dump.next_offset() >= written) continue;
    dump.append(std::string_view(bytes).substr(dump.next_offset(), written - dump.next_offset()));
    EXPECT_TRUE(written >= 100 || dump.size() == 0);
  }
  EXPECT_EQ(name(dump, 0x2000), "first");
  EXPECT_EQ(name(dump, 0x3000), "second");
  EXPECT_EQ(dump.next_offset(), bytes.size());
}

TEST(JitDumpTest, DoesNotNeedTheCodeInTheRecords) {
  const std::string bytes = JitDumpWriter()
                                .load(1, 0x100000, 5'000'000, "large", 5'000'000)
                                .load(2, 0x1000, 0x40, "next")
                                .bytes();
  JitDump dump;
  dump.append(std::string_view(bytes).substr(0, 200));
  EXPECT_EQ(name(dump, 0x100000), "large");
  EXPECT_GT(dump.next_offset(), 5'000'000u);
  dump.append(std::string_view(bytes).substr(dump.next_offset()));
  EXPECT_EQ(name(dump, 0x1000), "next");
}

TEST(JitDumpTest, SaysWhatIsWrongWithTheFile) {
  EXPECT_EQ(read("").damage(), "");
  EXPECT_EQ(read(std::string(100, 'x')).damage(), "is no jitdump");
  std::string bytes = JitDumpWriter().load(1, 0x1000, 0x40, "f").bytes();
  std::string swapped = bytes;
  std::swap(swapped[0], swapped[3]);
  std::swap(swapped[1], swapped[2]);
  EXPECT_EQ(read(swapped).damage(), "is of a machine of another byte order");
  std::string newer = bytes;
  newer[4] = 2;
  EXPECT_EQ(read(newer).damage(), "has version 2, which is not known");
  std::string shorter = bytes;
  shorter[8] = 8;
  EXPECT_EQ(read(shorter).damage(), "has a damaged header");
  const JitDump dump = read(bytes + std::string(16, '\0') + bytes);
  EXPECT_NE(dump.damage().find("is damaged at byte"), std::string::npos);
  EXPECT_EQ(name(dump, 0x1000), "f");  // what came before counts
}

TEST(JitDumpTest, LeavesOutRecordsThatMakeNoSense) {
  const JitDump dump = read(JitDumpWriter()
                                .record(0, "short")
                                .record(1, "short")
                                .load(1, 0xffffffffffffff00, 0x1000, "beyond the end")
                                .load(2, 0x2000, 0, "empty")
                                .load(3, 0x3000, 0x10, std::string(JitDump::kNameMax + 10, 'n'))
                                .load(4, 0x1000, 0x40, "a\x1b[31m;b")
                                .bytes());
  EXPECT_EQ(dump.size(), 1u);
  EXPECT_EQ(name(dump, 0x1000), "a[31m;b");
  EXPECT_EQ(dump.damage(), "");
}

TEST(JitDumpTest, StopsAtItsBounds) {
  JitDump dump;
  const std::string long_name(60'000, 'n');
  dump.append(JitDumpWriter().bytes());
  for (uint64_t i = 0; i < 2000 && !dump.full(); ++i)
    dump.append(JitDumpWriter()
                    .load(i, 0x1000 + i * 16, 16, long_name)
                    .bytes()
                    .substr(JitDumpWriter().bytes().size()));
  EXPECT_TRUE(dump.full());
  EXPECT_LE(dump.memory_bytes(), CodeRanges::kNamesMax + (1u << 20));
}

}  // namespace
}  // namespace dwell::symbolize
