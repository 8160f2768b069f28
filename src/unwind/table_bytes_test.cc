#include "unwind/table_bytes.h"

#include <gtest/gtest.h>
#include <xxhash.h>

#include <cstring>

#include "unwind/cfi_builder.h"

namespace dwell::unwind {
namespace {

Table some_table() {
  CfiBuilder cfi;
  const uint32_t cie = cfi.cie();
  for (uint64_t i = 0; i < 40; ++i)
    cfi.fde(cie, 0x2000 + i * 0x1000, 48, bytes({0x41, 0x0e, 16, 0x44, 0x0e, 8}));
  return compile(cfi.source());
}

// Gives damaged bytes a checksum that fits, so that what lies behind it is looked at.
std::string resealed(std::string bytes) {
  const uint64_t checksum = XXH3_64bits(bytes.data() + 16, bytes.size() - 16);
  std::memcpy(bytes.data() + 8, &checksum, sizeof checksum);
  return bytes;
}

TEST(TableBytes, GiveBackTheTable) {
  const Table table = some_table();
  ASSERT_GT(table.rows.size(), 40u);
  const Result<Table> again = table_from_bytes(to_bytes(table));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->rows, table.rows);
  EXPECT_EQ(again->first_page, table.first_page);
  EXPECT_EQ(again->covered_bytes, table.covered_bytes);
  EXPECT_EQ(again->entries, table.entries);
  for (uint64_t address = 0x1000; address < 0x30000; ++address) {
    const Rule *before = table.find(address), *after = again->find(address);
    ASSERT_EQ(before == nullptr, after == nullptr) << address;
    if (before != nullptr) {
      ASSERT_TRUE(equal(*before, *after)) << address;
    }
  }
}

TEST(TableBytes, GiveBackATableWithoutRows) {
  const Result<Table> again = table_from_bytes(to_bytes(Table{}));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->rows.empty());
}

TEST(TableBytes, AreRefusedWhereverTheyAreCutOrFlipped) {
  const std::string good = to_bytes(some_table());
  for (size_t size = 0; size < good.size(); ++size)
    ASSERT_FALSE(table_from_bytes(std::string_view(good).substr(0, size))) << size;
  for (size_t i = 0; i < good.size(); ++i) {
    std::string flipped = good;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << i % 8));
    ASSERT_FALSE(table_from_bytes(flipped)) << i;
  }
  EXPECT_FALSE(table_from_bytes(good + "x"));
}

// A liar with the right checksum gets no row out of order, no rule that is not there, no memory.
TEST(TableBytes, KeepTheirPromisesOrAreRefused) {
  const std::string good = to_bytes(some_table());
  size_t refused = 0;
  for (size_t i = 16; i < good.size(); ++i) {
    for (const int bit : {0, 7}) {
      std::string flipped = good;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      const Result<Table> table = table_from_bytes(resealed(flipped));
      if (!table) {
        ++refused;
        continue;
      }
      for (const dwell_unwind_page& page : table->pages)
        for (uint32_t row = 0; row < page.rows; ++row)
          ASSERT_LT(table->rows[page.first_row + row] & 0xffff, table->rules.size());
      for (uint64_t address = 0; address < 0x40000; address += 7) table->find(address);
    }
  }
  EXPECT_GT(refused, 200u);
}

TEST(TableBytes, OfMoreThanTheLimitsAreRefused) {
  const Table table = some_table();
  TableLimits limits;
  limits.rows_max = table.rows.size() - 1;
  EXPECT_FALSE(table_from_bytes(to_bytes(table), limits));
  limits.rows_max = table.rows.size();
  EXPECT_TRUE(table_from_bytes(to_bytes(table), limits));
}

}  // namespace
}  // namespace dwell::unwind
