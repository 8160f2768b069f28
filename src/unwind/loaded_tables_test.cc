#include "unwind/loaded_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "unwind/cfi_builder.h"
#include "unwind/fake_table_memory.h"

namespace dwell::unwind {
namespace {

using testing::HasSubstr;

// One function of 32 bytes at `start` whose CFA is rsp + `offset`.
Table table_with(uint64_t start, int offset) {
  CfiBuilder cfi;
  cfi.fde(cfi.cie(), start, 32, bytes({0x0e, offset}));
  return compile(cfi.source());
}

class LoadedTablesTest : public testing::Test {
 protected:
  void begin(const TableSizes& sizes) {
    auto memory = std::make_unique<FakeTableMemory>(sizes);
    memory_ = memory.get();
    tables_.emplace(std::move(memory));
  }
  void SetUp() override { begin({}); }
  Status map(uint32_t pid, uint64_t bias, TableId table, uint64_t now_ns = 0) {
    const std::array mappings{ProcessMapping{bias, bias + 0x100000, bias, table}};
    return tables_->set_process(pid, 1, mappings, now_ns);
  }
  int cfa(uint32_t pid, uint64_t ip) const {
    const auto* rule = memory_->find(pid, ip);
    return rule == nullptr ? -1 : rule->cfa_offset;
  }
  FakeTableMemory* memory_ = nullptr;
  std::optional<LoadedTables> tables_;
};

TEST_F(LoadedTablesTest, FindsTheRuleOfAnAddressInEachProcessThatMapsTheFile) {
  const TableId low = tables_->add(table_with(0x2000, 24)),
                high = tables_->add(table_with(0x52000, 40));
  const std::array both{ProcessMapping{0x7f0000000000, 0x7f0000100000, 0x7f0000000000, low},
                        ProcessMapping{0x7f0000200000, 0x7f0000300000, 0x7f0000200000, high}};
  ASSERT_TRUE(tables_->set_process(1, 1, both, 0));
  ASSERT_TRUE(map(2, 0x555500000000, low));
  EXPECT_EQ(cfa(1, 0x7f0000002010), 24);
  EXPECT_EQ(cfa(1, 0x7f0000252010), 40);
  EXPECT_EQ(cfa(2, 0x555500002010), 24);
  EXPECT_EQ(cfa(1, 0x7f0000002020), -1) << "behind the function";
  EXPECT_EQ(cfa(1, 0x7f0000201000), -1) << "a page below the table's first";
  EXPECT_EQ(cfa(2, 0x7f0000002010), -1) << "not mapped there";
}

TEST_F(LoadedTablesTest, NumbersTheRulesOfAllFilesTogether) {
  const TableId first = tables_->add(table_with(0x2000, 24)),
                second = tables_->add(table_with(0x2000, 16));
  ASSERT_TRUE(map(1, 0x10000000, first));
  ASSERT_TRUE(map(2, 0x10000000, second));
  EXPECT_EQ(cfa(1, 0x10002000), 24);
  EXPECT_EQ(cfa(2, 0x10002000), 16);
}

TEST_F(LoadedTablesTest, KeepsCodeWithoutATableAmongTheMappings) {
  ASSERT_TRUE(map(1, 0x10000000, kNoTable));
  EXPECT_EQ(cfa(1, 0x10002000), -1);
  EXPECT_EQ(tables_->processes(), 1u);
}

// A walk on another CPU may still be reading the old list.
TEST_F(LoadedTablesTest, UsesThePlaceOfAnOldListOnlyAfterAWhile) {
  const TableId table = tables_->add(table_with(0x2000, 24));
  for (uint32_t i = 0; i < 16; ++i) ASSERT_TRUE(map(1, 0x10000000 + i * 0x1000000, table, i));
  EXPECT_FALSE(map(1, 0x90000000, table, 16)) << "all places are taken or were just now";
  EXPECT_EQ(cfa(1, 0x10000000 + 15 * 0x1000000 + 0x2000), 24) << "the last that fitted stays";
  EXPECT_THAT(tables_->warnings().at(0), HasSubstr("did not fit"));
  EXPECT_TRUE(map(1, 0x90000000, table, LoadedTables::kReuseAfterNs + 16));
  EXPECT_EQ(cfa(1, 0x90002000), 24);
}

TEST_F(LoadedTablesTest, JoinsPlacesThatWereGivenBack) {
  const TableId table = tables_->add(table_with(0x2000, 24));
  for (uint32_t pid = 1; pid <= 8; ++pid) ASSERT_TRUE(map(pid, 0x10000000, table));
  for (uint32_t pid = 1; pid <= 8; ++pid) tables_->forget_process(pid, 0);
  EXPECT_EQ(memory_->processes(), 0u);
  std::vector<ProcessMapping> many(16, ProcessMapping{0, 1, 0, table});
  EXPECT_TRUE(tables_->set_process(1, 1, many, LoadedTables::kReuseAfterNs));
}

// U24: a child uses its parent's list after the parent has exec'ed or ended.
TEST_F(LoadedTablesTest, KeepsAListAsLongAsAForkedChildUsesIt) {
  begin({.mappings = 2});
  const TableId table = tables_->add(table_with(0x2000, 24));
  ASSERT_TRUE(map(1, 0x10000000, table));
  memory_->fork(1, 2);
  tables_->share(1, 2);
  tables_->forget_process(1, 0);
  ASSERT_TRUE(map(3, 0x20000000, table, 2 * LoadedTables::kReuseAfterNs));
  EXPECT_FALSE(map(4, 0x30000000, table, 4 * LoadedTables::kReuseAfterNs));
  EXPECT_EQ(cfa(2, 0x10002000), 24);
  tables_->forget_process(2, 5 * LoadedTables::kReuseAfterNs);
  EXPECT_TRUE(map(4, 0x30000000, table, 6 * LoadedTables::kReuseAfterNs));
}

// U17
TEST_F(LoadedTablesTest, SaysWhatDidNotFit) {
  begin({.rules = 4, .pages = 3, .processes = 1});
  const TableId first = tables_->add(table_with(0x2000, 24));
  const TableId second = tables_->add(table_with(0x2000, 32));
  const TableId third = tables_->add(table_with(0x2000, 40));
  EXPECT_NE(third, kNoTable);
  EXPECT_EQ(tables_->add(table_with(0x2000, 24)), kNoTable) << "no page is left";
  ASSERT_TRUE(map(1, 0x10000000, third));
  ASSERT_NE(memory_->find(1, 0x10002000), nullptr);
  EXPECT_EQ(memory_->find(1, 0x10002000)->cfa_kind, DWELL_CFA_RULES_FULL);
  EXPECT_FALSE(map(2, 0x10000000, first));
  const auto warnings = tables_->warnings();
  ASSERT_EQ(warnings.size(), 3u);
  EXPECT_THAT(warnings[0], HasSubstr("1 files did not fit"));
  EXPECT_THAT(warnings[1], HasSubstr("E2BIG"));
  EXPECT_THAT(warnings[2], HasSubstr("1 unwind rules did not fit"));
  EXPECT_NE(second, kNoTable);
}

TEST_F(LoadedTablesTest, LetsNoProcessTakeAllPlaces) {
  begin({.mappings = 1 << 17});
  const TableId table = tables_->add(table_with(0x2000, 24));
  ASSERT_TRUE(map(1, 0x10000000, table));
  const std::vector<ProcessMapping> many(LoadedTables::kMappingsOfProcessMax + 1,
                                         ProcessMapping{0, 1, 0, table});
  EXPECT_TRUE(tables_->set_process(1, 1, many, 0));
  EXPECT_EQ(memory_->processes(), 0u) << "it follows frame pointers";
  EXPECT_THAT(tables_->warnings().at(0), HasSubstr("did not fit"));
}

TEST_F(LoadedTablesTest, PutsEachPageIntoOneSlab) {
  begin({.rules = 64, .pages = 256, .mappings = 16, .slabs = 2});
  CfiBuilder cfi;
  const uint32_t cie = cfi.cie();
  // 60,000 rows in one page: four such pages fit into a slab, the fifth begins the next.
  std::string instructions;
  for (int i = 0; i < 60'000; ++i) instructions += bytes({0x41, 0x0e, i % 2 ? 8 : 16});
  cfi.fde(cie, 0x10000, 60'000, instructions);
  const Table table = compile(cfi.source());
  ASSERT_GE(table.rows.size(), 59'000u);
  std::vector<TableId> ids;
  for (int i = 0; i < 8; ++i) ids.push_back(tables_->add(table));
  ASSERT_TRUE(map(1, 0x10000000, ids[4]));
  EXPECT_EQ(cfa(1, 0x10010000 + 59'999), 16);
  EXPECT_EQ(cfa(1, 0x10010000 + 59'998), 8);
  EXPECT_TRUE(tables_->warnings().empty());
  tables_->add(table);
  EXPECT_THAT(tables_->warnings().at(0), HasSubstr("raise --unwind-rows"));
}

TEST_F(LoadedTablesTest, DropsTheTablesOfFilesThatNobodyMapsAnyMore) {
  constexpr uint64_t kIdle = LoadedTables::kIdleNs, kReuse = LoadedTables::kReuseAfterNs;
  begin({.pages = 2});
  const TableId kept = tables_->add(table_with(0x2000, 24)),
                left = tables_->add(table_with(0x2000, 32));
  const uint64_t rows = tables_->rows();
  ASSERT_TRUE(map(1, 0x10000000, kept));
  ASSERT_TRUE(map(2, 0x10000000, left));
  ASSERT_TRUE(map(2, 0x10000000, kept, 1000));
  EXPECT_TRUE(tables_->drop_idle(kIdle).empty()) << "it may start again at once";
  EXPECT_EQ(tables_->drop_idle(kIdle + 1000), std::vector{left});
  EXPECT_TRUE(tables_->drop_idle(2 * kIdle).empty());
  EXPECT_LT(tables_->rows(), rows);
  EXPECT_EQ(tables_->add(table_with(0x2000, 40), kIdle + 1000 + kReuse - 1), kNoTable)
      << "a walk may still be reading it";
  const TableId next = tables_->add(table_with(0x2000, 40), kIdle + 1000 + kReuse);
  ASSERT_NE(next, kNoTable);
  ASSERT_TRUE(map(3, 0x10000000, next));
  EXPECT_EQ(cfa(1, 0x10002000), 24);
  EXPECT_EQ(cfa(3, 0x10002000), 40);
  EXPECT_EQ(tables_->rows(), rows);
}

TEST_F(LoadedTablesTest, KeepsATableAsLongAsAForkedChildUsesIt) {
  constexpr uint64_t kIdle = LoadedTables::kIdleNs;
  const TableId table = tables_->add(table_with(0x2000, 24));
  ASSERT_TRUE(map(1, 0x10000000, table));
  memory_->fork(1, 2);
  tables_->share(1, 2);
  tables_->forget_process(1, 0);
  EXPECT_TRUE(tables_->drop_idle(5 * kIdle).empty());
  tables_->forget_process(2, 5 * kIdle);
  EXPECT_EQ(tables_->drop_idle(6 * kIdle), std::vector{table});
}

TEST_F(LoadedTablesTest, DropsATableThatNoProcessCameToUse) {
  const TableId table = tables_->add(table_with(0x2000, 24), 50);
  EXPECT_TRUE(tables_->drop_idle(LoadedTables::kIdleNs).empty());
  EXPECT_EQ(tables_->drop_idle(LoadedTables::kIdleNs + 50), std::vector{table});
}

}  // namespace
}  // namespace dwell::unwind
