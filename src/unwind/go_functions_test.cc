#include "unwind/go_functions.h"

#include <gtest/gtest.h>

#include "unwind/go_table_builder.h"
#include "unwind/table.h"

namespace dwell::unwind {
namespace {

using Builder = GoTableBuilder;
constexpr uint64_t kText = Builder::kText;

class GoFunctionsTest : public testing::Test {
 protected:
  // Rules that are found in it live until the next call.
  const Table& compiled() {
    section_ = go_.section();
    table_ = compile(go_.source(section_));
    return table_;
  }
  Builder go_;
  std::string section_;
  Table table_;
};

TEST_F(GoFunctionsTest, FindsTheCallerAboveTheFrameOfEachStretch) {
  go_.function("main.work", {{0, 0x10}, {0x118, 0x200}, {0, 1}});
  const Table& table = compiled();
  const Rule* entry = table.find(kText);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->cfa_register, DWELL_REGISTER_RSP);
  EXPECT_EQ(entry->cfa_offset, 8);
  EXPECT_EQ(entry->return_register, DWELL_RETURN_AT_CFA);
  EXPECT_EQ(entry->frame_kind, DWELL_SAVED_SAME);
  const Rule* body = table.find(kText + 0x10);
  ASSERT_NE(body, nullptr);
  EXPECT_EQ(body->cfa_offset, 0x120);
  EXPECT_EQ(body->frame_kind, DWELL_SAVED_AT_CFA);
  EXPECT_EQ(body->frame_offset, -16);
  EXPECT_EQ(table.find(kText + 0x210)->cfa_offset, 8);
  EXPECT_EQ(table.find(kText + 0x211), nullptr) << "behind the last function";
}

TEST_F(GoFunctionsTest, ReadsTheLongerRecordsOfGo1_20) {
  go_ = Builder(Builder::kGo120);
  go_.function("runtime.goexit", {{0, 0x10}}, Builder::kOutermost);
  go_.function("main.work", {{8, 0x10}});
  EXPECT_EQ(compiled().find(kText)->cfa_kind, DWELL_CFA_ROOT);
  EXPECT_EQ(table_.find(kText + 0x10)->cfa_offset, 16);
}

// What lies above mcall's frame is left over from other calls, and rbp is that of the goroutine.
TEST_F(GoFunctionsTest, EndsAStackWhereTheRunTimeDoes) {
  go_.function("runtime.mcall", {{0, 0x10}}, Builder::kWritesPointer);
  go_.function("runtime.mstart.abi0", {{0, 0x10}}, Builder::kOutermost);
  go_.function("runtime.rt0_go.abi0", {{0, 0x10}}, Builder::kOutermost);
  for (uint64_t at = kText; at < kText + 0x30; at += 0x10)
    EXPECT_EQ(compiled().find(at)->cfa_kind, DWELL_CFA_ROOT) << at;
}

TEST_F(GoFunctionsTest, GoesOnThroughASignalHandler) {
  go_.function("runtime.sigtramp.abi0", {{0x40, 0x10}}, Builder::kOutermost);
  EXPECT_EQ(compiled().find(kText)->cfa_offset, 0x48);
}

TEST_F(GoFunctionsTest, FollowsTheFramePointerFromOneStackToAnother) {
  go_.function("runtime.systemstack.abi0", {{0, 0x10}}, Builder::kWritesPointer);
  go_.function("runtime.sigreturn.abi0", {{0, 0x10}});
  go_.function("main.work", {{0, 0x10}});
  EXPECT_EQ(compiled().find(kText), nullptr);
  EXPECT_EQ(table_.find(kText + 0x1f), nullptr) << "the walker knows it by its bytes";
  EXPECT_NE(table_.find(kText + 0x20), nullptr);
}

TEST_F(GoFunctionsTest, WinsOverDebugFrameAndYieldsToEhFrame) {
  go_.function("main.work", {{0x20, 0x40}});
  CfiBuilder c_code;
  c_code.fde(c_code.cie(), kText + 0x30, 0x40, "");
  section_ = go_.section();
  CfiSource source = c_code.source();
  source.go_functions = section_;
  const Table table = compile(source);
  EXPECT_EQ(table.find(kText)->cfa_offset, 0x28);
  EXPECT_EQ(table.find(kText + 0x2f)->cfa_offset, 0x28);
  EXPECT_EQ(table.find(kText + 0x30)->cfa_offset, 8);
}

TEST_F(GoFunctionsTest, HasNoRuleFromTheFirstStepOnThatMakesNoSense) {
  go_.function("main.odd", {{0, 0x10}, {0x13, 0x10}, {0, 0x10}});
  go_.function("main.work", {{0, 0x10}});
  EXPECT_NE(compiled().find(kText + 0xf), nullptr);
  EXPECT_EQ(table_.find(kText + 0x10), nullptr);
  EXPECT_EQ(table_.find(kText + 0x2f), nullptr);
  EXPECT_NE(table_.find(kText + 0x30), nullptr);
  EXPECT_EQ(table_.faults[static_cast<size_t>(Fault::kInstruction)], 1u);
}

TEST_F(GoFunctionsTest, StopsAtAStepAsLargeAsCanBe) {
  const std::string steps = bytes({2, 4}) + std::string(9, '\xff') + bytes({1, 4, 0});
  const GoFunction function{0x1000, 0x1010, GoFunction::Caller::kAboveFrame, steps};
  size_t budget = 64;
  uint64_t told_to = 0;
  EXPECT_FALSE(GoFunctions::tell(function, budget,
                                 [&](uint64_t, uint64_t end, const Rule&) { told_to = end; }));
  EXPECT_EQ(told_to, 0x1004u);
}

TEST_F(GoFunctionsTest, ReadsNoOtherLayout) {
  go_.function("main.work", {{0, 0x10}});
  const std::string section = go_.section();
  for (const size_t at : {size_t{0}, size_t{6}, size_t{7}}) {
    std::string other = section;
    other[at] = 4;
    EXPECT_TRUE(GoFunctions::read(other).empty()) << "byte " << at;
  }
  go_ = Builder(Builder::kGo116);
  go_.function("main.work", {{0, 0x10}});
  EXPECT_TRUE(GoFunctions::read(go_.section()).empty());
}

TEST_F(GoFunctionsTest, CountsFromTheStartOfTheTextThatTheFileTells) {
  go_.function("main.work", {{0, 0x10}});
  section_ = go_.section();
  section_.replace(24, 8, 8, '\0');
  EXPECT_TRUE(GoFunctions::read(section_).empty()) << "nobody says where it begins";
  CfiSource source = go_.source(section_);
  source.go_text_start = 0x5000;
  const Table table = compile(source);
  EXPECT_NE(table.find(0x5000), nullptr);
  EXPECT_EQ(table.find(kText), nullptr);
}

// A hostile file: whatever is cut off, nothing is read beyond it, and every function lies in order.
TEST_F(GoFunctionsTest, TakesWhatIsThereOfADamagedTable) {
  for (int i = 0; i < 8; ++i) go_.function("main.work", {{0, 4}, {0x18, 0x40}, {0, 1}});
  const std::string section = go_.section();
  for (size_t bytes = 0; bytes < section.size(); ++bytes) {
    const std::string cut = section.substr(0, bytes);
    uint64_t last = 0;
    for (const GoFunction& function : GoFunctions::read(cut)) {
      EXPECT_GE(function.start, last);
      last = function.end;
      size_t budget = 64, told = 0;
      GoFunctions::tell(function, budget, [&](uint64_t, uint64_t, const Rule&) { ++told; });
      EXPECT_LE(told, 3u);
    }
  }
}

TEST_F(GoFunctionsTest, DecodesNoMoreThanItsBudget) {
  go_.function("main.work", {{0, 4}, {0x18, 0x40}, {0, 1}});
  section_ = go_.section();
  const auto functions = GoFunctions::read(section_);
  ASSERT_EQ(functions.size(), 1u);
  size_t budget = 3;
  EXPECT_FALSE(GoFunctions::tell(functions[0], budget, [](uint64_t, uint64_t, const Rule&) {}));
  EXPECT_EQ(budget, 0u);
}

}  // namespace
}  // namespace dwell::unwind
