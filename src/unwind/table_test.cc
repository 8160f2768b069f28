#include "unwind/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unwind/cfi_builder.h"

namespace dwell::unwind {
namespace {

uint64_t faults(const Table& table, Fault fault) {
  return table.faults[static_cast<size_t>(fault)];
}

// Push rbp, mov rsp to rbp: what most functions with frame pointers begin with.
std::string frame_pointer_prologue() { return bytes({0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6}); }

class TableTest : public testing::Test {
 protected:
  // Rules that are found in it live until the next call.
  const Table& compiled() {
    table_ = compile(cfi_.source());
    return table_;
  }
  CfiBuilder cfi_;
  Table table_;
};

TEST_F(TableTest, HasARuleForEachStretchOfAFunction) {
  cfi_.fde(cfi_.cie(), 0x2000, 0x40, frame_pointer_prologue());
  const Table& table = compiled();
  const Rule* entry = table.find(0x2000);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->cfa_kind, DWELL_CFA_REGISTER);
  EXPECT_EQ(entry->cfa_register, DWELL_REGISTER_RSP);
  EXPECT_EQ(entry->cfa_offset, 8);
  EXPECT_EQ(entry->frame_kind, DWELL_SAVED_SAME);
  const Rule* pushed = table.find(0x2001);
  ASSERT_NE(pushed, nullptr);
  EXPECT_EQ(pushed->cfa_offset, 16);
  EXPECT_EQ(pushed->frame_kind, DWELL_SAVED_AT_CFA);
  EXPECT_EQ(pushed->frame_offset, -16);
  const Rule* body = table.find(0x203f);
  ASSERT_NE(body, nullptr);
  EXPECT_EQ(body->cfa_register, DWELL_REGISTER_RBP);
  EXPECT_EQ(body->cfa_offset, 16);
  EXPECT_EQ(table.covered_bytes, 0x40u);
}

// U5, U6: a return address behind the last call of a function that never returns is looked up one
// byte earlier, and code without data between two functions has none of theirs.
TEST_F(TableTest, CoversAFunctionToItsLastByteAndNotTheGapBehind) {
  const uint32_t cie = cfi_.cie();
  cfi_.fde(cie, 0x2000, 0x10, "");
  cfi_.fde(cie, 0x2020, 0x10, "");
  const Table& table = compiled();
  EXPECT_EQ(table.find(0x1fff), nullptr);
  EXPECT_NE(table.find(0x200f), nullptr);
  EXPECT_EQ(table.find(0x2010), nullptr);
  EXPECT_EQ(table.find(0x201f), nullptr);
  EXPECT_NE(table.find(0x2020), nullptr);
  EXPECT_EQ(table.find(0x2030), nullptr);
  EXPECT_EQ(table.find(0x12020), nullptr);
}

TEST_F(TableTest, HasNoRowBetweenNeighboursOfOneRule) {
  const uint32_t cie = cfi_.cie();
  cfi_.fde(cie, 0x2000, 0x10, "");
  cfi_.fde(cie, 0x2010, 0x10, "");
  EXPECT_EQ(compiled().rows.size(), 3u) << "before, both, behind";
}

// U3: an early return in the middle of a function.
TEST_F(TableTest, RestoresTheCfaWithTheRememberedState) {
  cfi_.fde(cfi_.cie(), 0x2000, 0x40,
           frame_pointer_prologue() + bytes({0x48, 0x0a, 0x0c, 7, 8, 0xc6, 0x41, 0x0b}));
  const Table& table = compiled();
  const Rule* leaving = table.find(0x200c);
  ASSERT_NE(leaving, nullptr);
  EXPECT_EQ(leaving->cfa_register, DWELL_REGISTER_RSP);
  EXPECT_EQ(leaving->frame_kind, DWELL_SAVED_SAME) << "DW_CFA_restore: as the CIE says";
  const Rule* behind = table.find(0x200d);
  ASSERT_NE(behind, nullptr);
  EXPECT_EQ(behind->cfa_register, DWELL_REGISTER_RBP);
  EXPECT_EQ(behind->cfa_offset, 16);
  EXPECT_EQ(behind->frame_offset, -16);
}

// U4
TEST_F(TableTest, EndsAtAnUndefinedReturnAddress) {
  cfi_.fde(cfi_.cie(), 0x2000, 0x20, bytes({0x07, 16}));
  EXPECT_EQ(compiled().find(0x2010)->cfa_kind, DWELL_CFA_ROOT);
}

// U7
TEST_F(TableTest, KnowsTheExpressionOfAPlt) {
  cfi_.fde(cfi_.cie(), 0x2000, 0x40,
           bytes({0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}));
  const Rule* rule = compiled().find(0x2010);
  EXPECT_EQ(rule->cfa_kind, DWELL_CFA_PLT);
  EXPECT_EQ(rule->cfa_add, 11);
}

// U8, U9: the stack was realigned; the CFA and rbp are found through rbp.
TEST_F(TableTest, FollowsARealignedFrame) {
  cfi_.fde(cfi_.cie(), 0x2000, 0x40,
           bytes({0x10, 6, 2, 0x76, 0, 0x0f, 3, 0x76, 0x78, 0x06, 0x10, 3, 2, 0x76, 0x70}));
  const Table& table = compiled();
  const Rule* rule = table.find(0x2010);
  EXPECT_EQ(rule->cfa_kind, DWELL_CFA_MEMORY);
  EXPECT_EQ(rule->cfa_register, DWELL_REGISTER_RBP);
  EXPECT_EQ(rule->cfa_offset, -8);
  EXPECT_EQ(rule->frame_kind, DWELL_SAVED_AT_FRAME);
  EXPECT_EQ(rule->frame_offset, 0);
  EXPECT_EQ(rule->rbx_kind, DWELL_SAVED_AT_FRAME);
  EXPECT_EQ(rule->rbx_offset, -16);
}

// U10
TEST_F(TableTest, FollowsRbx) {
  cfi_.fde(cfi_.cie(), 0x2000, 0x40, bytes({0x83, 2, 0x0c, 3, 24}));
  const Rule* rule = compiled().find(0x2010);
  EXPECT_EQ(rule->cfa_register, DWELL_REGISTER_RBX);
  EXPECT_EQ(rule->rbx_kind, DWELL_SAVED_AT_CFA);
  EXPECT_EQ(rule->rbx_offset, -16);
}

// U11: the restorer of signal handlers, which glibc describes register by register.
TEST_F(TableTest, KnowsTheSignalFrame) {
  cfi_.fde(cfi_.cie("zRS"), 0x2000, 0x10,
           bytes({0x0f, 4, 0x77, 0xa0, 0x01, 0x06, 0x10, 16, 3, 0x77, 0xa8, 0x01}));
  EXPECT_EQ(compiled().find(0x2000)->cfa_kind, DWELL_CFA_SIGNAL);
}

TEST_F(TableTest, MarksCodeThatIsEnteredByInterruption) {
  cfi_.fde(cfi_.cie("zRS"), 0x2000, 0x10, "");
  EXPECT_EQ(compiled().find(0x2000)->flags, DWELL_RULE_EXACT_IP);
}

// U13: vfork keeps its return address in rdi while the child borrows the stack.
TEST_F(TableTest, FindsAReturnAddressInARegister) {
  cfi_.fde(cfi_.cie(), 0x2000, 0x10, bytes({0x0e, 0, 0x09, 16, 5}));
  const Rule* rule = compiled().find(0x2000);
  EXPECT_EQ(rule->return_register, DWELL_REGISTER_RDI);
  EXPECT_EQ(rule->cfa_offset, 0);
}

// U25: the letters are read in order, each with its own data.
TEST_F(TableTest, ReadsAugmentationsInOrder) {
  const std::string personality = bytes({0x9b, 1, 2, 3, 4, 0x1b, 0x1b});  // P, then L, then R
  struct {
    std::string letters, data;
  } cases[] = {{"zPLR", personality}, {"zRS", "\x1b"}, {"zRB", "\x1b"}, {"zRX", "\x1b\x05\x06"}};
  uint64_t start = 0x2000;
  for (const auto& one : cases) cfi_.fde(cfi_.cie(one.letters, one.data), start += 0x100, 0x10, "");
  const Table& table = compiled();
  for (start = 0x2100; start <= 0x2400; start += 0x100) EXPECT_NE(table.find(start), nullptr);
}

TEST_F(TableTest, ReadsTheAugmentationOfOldCompilers) {
  std::string body = CfiBuilder::fixed<uint32_t>(0) + bytes({1, 'e', 'h', 0});
  body += CfiBuilder::fixed<uint64_t>(0x1234) + bytes({1, 0x78, 16});
  const uint32_t cie = cfi_.append(body + CfiBuilder::usual_start());
  std::string fde =
      CfiBuilder::fixed<uint32_t>(static_cast<uint32_t>(cfi_.section().size()) + 4 - cie);
  fde += CfiBuilder::fixed<uint64_t>(0x2000) + CfiBuilder::fixed<uint64_t>(0x10);
  cfi_.append(fde);
  EXPECT_NE(compiled().find(0x2000), nullptr);
}

TEST_F(TableTest, RepeatsTheRuleInForceAtEachPage) {
  cfi_.fde(cfi_.cie(), 0xfff0, 0x20020, bytes({0x48, 0x0e, 32}));
  const Table& table = compiled();
  ASSERT_EQ(table.pages.size(), 4u);
  for (const uint64_t address : {0xfffful, 0x10000ul, 0x20000ul, 0x2fffful, 0x3000ful}) {
    ASSERT_NE(table.find(address), nullptr) << std::hex << address;
    EXPECT_EQ(table.find(address)->cfa_offset, 32);
  }
  EXPECT_EQ(table.find(0x30010), nullptr);
  EXPECT_EQ(table.pages[1].rows, 1u);
}

TEST_F(TableTest, HasNoRowsForPagesWithoutUnwindData) {
  const uint32_t cie = cfi_.cie();
  cfi_.fde(cie, 0x2000, 0x10, "");
  cfi_.fde(cie, 0x52000, 0x10, "");
  const Table& table = compiled();
  ASSERT_EQ(table.pages.size(), 6u);
  for (size_t page = 1; page < 5; ++page) EXPECT_EQ(table.pages[page].rows, 0u);
  EXPECT_EQ(table.find(0x51fff), nullptr);
  EXPECT_NE(table.find(0x52000), nullptr);
}

// Linkers write a zero word at the end, and sometimes before it.
TEST_F(TableTest, GoesOnBehindAnEmptyEntry) {
  const uint32_t cie = cfi_.cie();
  cfi_.append_raw(bytes({0, 0, 0, 0}));
  cfi_.fde(cie, 0x2000, 0x10, "");
  EXPECT_NE(compiled().find(0x2000), nullptr);
}

TEST_F(TableTest, EhFrameWinsOverDebugFrame) {
  cfi_.fde(cfi_.cie(), 0x2000, 0x10, bytes({0x0e, 48}));
  CfiBuilder debug;
  std::string cie = CfiBuilder::fixed<uint32_t>(UINT32_MAX) + bytes({1, 0, 1, 0x78, 16});
  debug.append(cie + CfiBuilder::usual_start());
  for (const uint64_t start : {0x1ff8ul, 0x3000ul}) {
    std::string fde = CfiBuilder::fixed<uint32_t>(0);
    debug.append(fde + CfiBuilder::fixed<uint64_t>(start) + CfiBuilder::fixed<uint64_t>(0x10));
  }
  CfiSource source = cfi_.source();
  source.debug_frame = {debug.section(), 0};
  const Table table = compile(source);
  EXPECT_EQ(table.find(0x1ff8)->cfa_offset, 8) << "cut off where .eh_frame begins";
  EXPECT_EQ(table.find(0x2004)->cfa_offset, 48);
  EXPECT_EQ(table.find(0x3004)->cfa_offset, 8);
}

// ---- what no compiler writes ----

TEST_F(TableTest, GivesOverlappingEntriesToTheFirst) {
  const uint32_t cie = cfi_.cie();
  cfi_.fde(cie, 0x2000, 0x20, bytes({0x0e, 32}));
  cfi_.fde(cie, 0x2010, 0x20, bytes({0x44, 0x0e, 64}));
  cfi_.fde(cie, 0x2018, 0x08, bytes({0x0e, 96}));
  const Table& table = compiled();
  EXPECT_EQ(table.find(0x201f)->cfa_offset, 32);
  EXPECT_EQ(table.find(0x2020)->cfa_offset, 64);
  EXPECT_EQ(table.find(0x2030), nullptr);
  EXPECT_EQ(faults(table, Fault::kOverlap), 1u);
}

TEST_F(TableTest, LeavesOutWhatLiesOutsideTheCode) {
  const uint32_t cie = cfi_.cie();
  cfi_.fde(cie, 0, 0x10, "");
  cfi_.fde(cie, 0x500000, 0x10, "");
  cfi_.fde(cie, 0xffff0, 0x7fffffff, "");
  const Table& table = compiled();
  EXPECT_EQ(faults(table, Fault::kOutsideCode), 2u);
  EXPECT_NE(table.find(0xfffff), nullptr) << "cut off at the end of the segment";
  EXPECT_EQ(table.find(0x100000), nullptr);
}

TEST_F(TableTest, SaysUnsupportedFromAnInstructionThatMakesNoSense) {
  const std::string senseless[] = {bytes({0x3f}), bytes({0x0b}), bytes({0x0f, 0x7f, 1}),
                                   bytes({0x0c, 0x80, 0x80})};
  const uint32_t cie = cfi_.cie();
  uint64_t start = 0x2000;
  for (const std::string& instructions : senseless)
    cfi_.fde(cie, start += 0x100, 0x20, bytes({0x48}) + instructions);
  const Table& table = compiled();
  for (start = 0x2100; start <= 0x2400; start += 0x100) {
    EXPECT_EQ(table.find(start + 7)->cfa_kind, DWELL_CFA_REGISTER) << "before it all is well";
    EXPECT_EQ(table.find(start + 8)->cfa_kind, DWELL_CFA_UNSUPPORTED);
  }
  EXPECT_EQ(faults(table, Fault::kInstruction), 4u);
}

TEST_F(TableTest, SaysUnsupportedForWhatNoRuleCanSay) {
  const std::string beyond[] = {
      bytes({0x0f, 3, 0x77, 8, 0x12}),                 // an expression
      bytes({0x0c, 7, 0x80, 0x80, 0x80, 0x80, 0x10}),  // an offset over 4 GiB
      bytes({0x0c, 17, 8}),                            // a vector register
      bytes({0x90, 2}),                                // return address at CFA-16
      bytes({0x10, 16, 2, 0x77, 0}),                   // ... by an expression
  };
  const uint32_t cie = cfi_.cie();
  uint64_t start = 0x2000;
  for (const std::string& instructions : beyond) cfi_.fde(cie, start += 0x100, 0x20, instructions);
  const Table& table = compiled();
  for (start = 0x2100; start <= 0x2500; start += 0x100)
    EXPECT_EQ(table.find(start)->cfa_kind, DWELL_CFA_UNSUPPORTED) << std::hex << start;
}

TEST_F(TableTest, LosesARegisterRatherThanTheFrame) {
  const std::string beyond[] = {bytes({0x07, 6}), bytes({0x14, 6, 2}),
                                bytes({0x05, 6, 0x81, 0x80, 0x02}), bytes({0x09, 6, 10})};
  const uint32_t cie = cfi_.cie();
  uint64_t start = 0x2000;
  for (const std::string& instructions : beyond) cfi_.fde(cie, start += 0x100, 0x20, instructions);
  const Table& table = compiled();
  for (start = 0x2100; start <= 0x2400; start += 0x100) {
    EXPECT_EQ(table.find(start)->cfa_kind, DWELL_CFA_REGISTER);
    EXPECT_EQ(table.find(start)->frame_kind, DWELL_SAVED_LOST) << std::hex << start;
  }
}

TEST_F(TableTest, SurvivesBeingCutOffAnywhere) {
  const uint32_t cie = cfi_.cie("zPLR", bytes({0x9b, 1, 2, 3, 4, 0x1b, 0x1b}));
  for (int i = 0; i < 4; ++i)
    cfi_.fde(cie, 0x2000 + 0x100 * static_cast<uint64_t>(i), 0x80, frame_pointer_prologue());
  for (size_t size = 0; size < cfi_.section().size(); ++size) {
    CfiSource source = cfi_.source();
    source.eh_frame.bytes = source.eh_frame.bytes.substr(0, size);
    const Table table = compile(source);
    EXPECT_LE(table.entries, 4u);
  }
}

TEST_F(TableTest, RefusesACieThatPointsNowhereSensible) {
  const uint32_t cie = cfi_.cie();
  const uint32_t fde = cfi_.fde(cie, 0x2000, 0x10, "");
  cfi_.fde(fde, 0x3000, 0x10, "");      // an FDE as CIE
  cfi_.fde(cie + 2, 0x4000, 0x10, "");  // the middle of a CIE
  cfi_.fde(~0u, 0x5000, 0x10, "");      // beyond the section
  const Table& table = compiled();
  EXPECT_EQ(table.entries, 1u);
  EXPECT_EQ(faults(table, Fault::kNoCie), 3u);
}

TEST_F(TableTest, GivesNoNeighboursRuleToAnEntryWhoseCieMakesNoSense) {
  cfi_.fde(cfi_.cie(), 0x2000, 0x10, "");
  cfi_.fde(cfi_.cie("zR", "\x1b", bytes({0x3f})), 0x2010, 0x10, "");
  const Table& table = compiled();
  EXPECT_NE(table.find(0x200f), nullptr);
  EXPECT_EQ(table.find(0x2010), nullptr);
}

// A CIE's instructions run once, whoever refers to it, and it may not be long: else a small file
// could cost the product of the two.
TEST_F(TableTest, TakesLinearTimeForManyEntriesOfOneCie) {
  const uint32_t cie = cfi_.cie("zR", "\x1b", CfiBuilder::usual_start() + std::string(400, '\0'));
  for (uint64_t i = 0; i < 20'000; ++i) cfi_.fde(cie, 0x2000 + i * 16, 16, "");
  EXPECT_EQ(compile(cfi_.source(0x1000000)).entries, 20'000u);
  CfiBuilder longer;
  longer.fde(longer.cie("zR", "\x1b", std::string(CfiSection::kCieInstructionsMax + 1, '\0')),
             0x2000, 16, "");
  EXPECT_EQ(faults(compile(longer.source()), Fault::kNoCie), 1u);
}

// U17
TEST_F(TableTest, StopsAtItsLimitsAndSaysSo) {
  const uint32_t cie = cfi_.cie();
  for (uint64_t i = 0; i < 1000; ++i) cfi_.fde(cie, 0x2000 + i * 32, 16, bytes({0x41, 0x0e, 16}));
  TableLimits limits;
  limits.rows_max = 100;
  const Table few = compile(cfi_.source(), limits);
  EXPECT_LE(few.rows.size(), 100u);
  EXPECT_EQ(faults(few, Fault::kTooMany), 1u);
  EXPECT_NE(few.find(0x2000), nullptr) << "what came before is kept";
  EXPECT_EQ(few.find(0xffff), nullptr) << "and the last row does not reach further than it should";
  limits = {};
  limits.pages_max = 2;
  CfiBuilder apart;
  const uint32_t another = apart.cie();
  apart.fde(another, 0x2000, 16, "");
  apart.fde(another, 0x90000, 16, "");
  EXPECT_EQ(faults(compile(apart.source(), limits), Fault::kTooMany), 1u);
  // One entry that reaches over more pages than there may be.
  CfiBuilder wide;
  wide.fde(wide.cie(), 0x2000, 16, "");
  wide.fde(0, 0x3000, 0x7fffffff, bytes({0x41, 0x0e, 16}));
  const Table table = compile(wide.source(uint64_t{1} << 40), limits);
  EXPECT_EQ(faults(table, Fault::kTooMany), 1u);
  EXPECT_NE(table.find(0x2000), nullptr);
}

TEST(RuleTable, GivesEqualRulesOneNumberAndSaysWhenItIsFull) {
  RuleTable table(4);
  Rule rule = {};
  rule.cfa_kind = DWELL_CFA_REGISTER;
  const uint16_t first = table.number_of(rule);
  EXPECT_EQ(first, 2) << "0 is no data, 1 is full";
  EXPECT_EQ(table.number_of(rule), first);
  rule.cfa_offset = 8;
  EXPECT_EQ(table.number_of(rule), 3);
  rule.cfa_offset = 16;
  EXPECT_EQ(table.number_of(rule), RuleTable::kFull);
  EXPECT_EQ(table.refused(), 1u);
}

}  // namespace
}  // namespace dwell::unwind
