// Go's table of functions in each of its forms, made by hand, and damaged.
#include "symbolize/pclntab.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace dwell::symbolize {
namespace {

constexpr uint32_t kGo116 = 0xfffffffa, kGo118 = 0xfffffff0, kGo120 = 0xfffffff1;

template <typename Number>
void put(std::string& bytes, size_t at, Number value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

// Two functions, "main.a" at 0x1000 and "main.b" at 0x1040, 0x20 bytes long. Names at 0x80,
// functions at 0x100; the start of the text, where the form has one, is 0x1000.
std::string made_up_table(uint32_t magic, uint8_t pointer_bytes = 8) {
  std::string table(0x200, '\0');
  put(table, 0, magic);
  put<uint8_t>(table, 6, 1);
  put<uint8_t>(table, 7, pointer_bytes);
  size_t words = 8;
  const auto word = [&](uint64_t value) {
    std::memcpy(table.data() + words, &value, pointer_bytes);
    words += pointer_bytes;
  };
  const bool from_text = magic != kGo116;
  word(2);
  word(1);
  if (from_text) word(0x1000);
  word(0x80);
  word(0);
  word(0);
  word(0);
  word(0x100);
  std::memcpy(table.data() + 0x80, "main.a\0main.b", 14);
  const size_t entry = from_text ? 4 : pointer_bytes;
  const uint64_t base = from_text ? 0 : 0x1000;
  const uint64_t entries[] = {base, 0x40, base + 0x40, 0x60, base + 0x60};
  for (size_t i = 0; i < std::size(entries); ++i)
    std::memcpy(table.data() + 0x100 + i * entry, &entries[i], entry);
  put<uint32_t>(table, 0x140 + entry, 0);
  put<uint32_t>(table, 0x160 + entry, 7);
  return table;
}

std::string list(std::string_view table) {
  const auto read = Pclntab::read(table);
  if (!read) return read.error().message;
  std::string text;
  for (const GoFunction& f : read->functions())
    text +=
        std::string(f.name) + "@" + std::to_string(f.address) + "+" + std::to_string(f.bytes) + " ";
  return text;
}

constexpr const char* kBoth = "main.a@4096+64 main.b@4160+32 ";

TEST(PclntabTest, ReadsTheFormsOfGo116And118And120) {
  EXPECT_EQ(list(made_up_table(kGo116)), kBoth);
  EXPECT_EQ(list(made_up_table(kGo118)), kBoth);
  EXPECT_EQ(list(made_up_table(kGo120)), kBoth);
}

TEST(PclntabTest, ReadsThoseOf32BitPrograms) {
  EXPECT_EQ(list(made_up_table(kGo116, 4)), kBoth);
  EXPECT_EQ(list(made_up_table(kGo120, 4)), kBoth);
}

TEST(PclntabTest, TakesTheStartOfTheTextFromOutsideWhereTheTableHasNone) {
  std::string table = made_up_table(kGo120);
  auto read = Pclntab::read(table);
  ASSERT_TRUE(read);
  put<uint64_t>(table, read->text_start_at(), 0);
  read = Pclntab::read(table);
  EXPECT_TRUE(read->counts_from_text());
  EXPECT_EQ(read->text_start(), 0u);
  EXPECT_EQ(read->text_bytes(), 0x60u);
  read->set_text_start(0x401000);
  EXPECT_EQ(read->functions()[1].address, 0x401040u);
}

TEST(PclntabTest, RefusesWhatIsNoTableOfAKnownForm) {
  EXPECT_EQ(list(""), "no pclntab of a form that is known");
  EXPECT_EQ(list(std::string(4096, 'x')), "no pclntab of a form that is known");
  EXPECT_EQ(list(made_up_table(0xfffffffb)), "a pclntab of Go before 1.16");
  EXPECT_EQ(list(made_up_table(kGo120, 3)), "the header of the pclntab is damaged");
  std::string table = made_up_table(kGo120);
  put<uint64_t>(table, 8, Pclntab::kFunctionsMax + 1);
  EXPECT_EQ(list(table), "the pclntab has 2000001 functions, limit 2000000");
  EXPECT_EQ(list(made_up_table(kGo118).substr(0, 0x110)), "the pclntab is empty or cut off");
}

TEST(PclntabTest, LeavesOutFunctionsThatMakeNoSense) {
  std::string table = made_up_table(kGo120);
  put<uint32_t>(table, 0x104, 0xffffff00);  // outside
  EXPECT_EQ(list(table), "main.b@4160+32 ");
  table = made_up_table(kGo120);
  put<uint32_t>(table, 0x144, 0x7fffffff);  // a name outside
  EXPECT_EQ(list(table), "main.b@4160+32 ");
  table = made_up_table(kGo120);
  put<uint32_t>(table, 0x108, 0);  // does not ascend
  EXPECT_EQ(list(table), "main.b@4096+96 ");
}

TEST(PclntabTest, CutsANameWithoutAnEnd) {
  std::string table = made_up_table(kGo120) + std::string(10'000, 'n');
  put<uint32_t>(table, 0x164, 0x200 - 0x80);
  const auto functions = Pclntab::read(table)->functions();
  ASSERT_EQ(functions.size(), 2u);
  EXPECT_EQ(functions[1].name, std::string(Pclntab::kNameMax, 'n'));
}

}  // namespace
}  // namespace dwell::symbolize
