// Go's table of functions in each of its forms, made by hand, and damaged.
#include "unwind/pclntab.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <utility>

namespace dwell::unwind {
namespace {

constexpr uint32_t kGo116 = 0xfffffffa, kGo118 = 0xfffffff0, kGo120 = 0xfffffff1;

template <typename Number>
void put(std::string& bytes, size_t at, Number value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

constexpr size_t kFrameSizes = 0xc0;

// Two functions, "main.a" at 0x1000 and "main.b" at 0x1040, 0x20 bytes long. Names at 0x80,
// functions at 0x100, their records at 0x140 and 0x160; the start of the text, where the form has
// one, is 0x1000.
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
  word(kFrameSizes);
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
  for (uint64_t i = 0; i < read->size(); ++i)
    if (const auto f = read->function(i))
      text += std::string(f->name) + "@" + std::to_string(f->start) + "+" +
              std::to_string(f->end - f->start) + " ";
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
  EXPECT_FALSE(Pclntab::read(table)->lacks_text_start());
  EXPECT_EQ(Pclntab::read(table, 0x401000)->function(1)->start, 0x1040u) << "it has one";
  put<uint64_t>(table, Pclntab::read(table)->text_start_at(), 0);
  EXPECT_TRUE(Pclntab::read(table)->lacks_text_start());
  EXPECT_EQ(Pclntab::read(table)->text_bytes(), 0x60u);
  const auto read = Pclntab::read(table, 0x401000);
  EXPECT_FALSE(read->lacks_text_start());
  EXPECT_EQ(read->text_bytes(), 0x60u);
  EXPECT_EQ(read->function(1)->start, 0x401040u);
}

TEST(PclntabTest, LeavesTheAddressesOfGo116AsTheyAre) {
  const std::string table = made_up_table(kGo116);
  const auto read = Pclntab::read(table, 0x401000);
  EXPECT_FALSE(read->lacks_text_start());
  EXPECT_EQ(read->function(1)->start, 0x1040u);
}

TEST(PclntabTest, ReadsWhatAFunctionsRecordSaysOfItsFrame) {
  for (const auto& [magic, flags_at] : {std::pair(kGo118, 37), std::pair(kGo120, 41)}) {
    std::string table = made_up_table(magic);
    put<uint32_t>(table, 0x140 + 16, 3);
    put<uint8_t>(table, 0x140 + static_cast<size_t>(flags_at), 2);
    const auto function = Pclntab::read(table)->function(0);
    ASSERT_TRUE(function);
    EXPECT_EQ(function->frame_sizes.data(), table.data() + kFrameSizes + 3);
    EXPECT_EQ(function->flags, 2);
  }
}

TEST(PclntabTest, FindsATableAmongOtherBytes) {
  const std::string table = made_up_table(kGo118);
  EXPECT_EQ(Pclntab::find(table), 0u);
  EXPECT_EQ(Pclntab::find(std::string(48, 'x') + table), 48u);
  EXPECT_EQ(Pclntab::find(table.substr(0, 64) + table), 64u) << "the first is cut off";
  EXPECT_EQ(Pclntab::find(std::string(44, 'x') + table), std::nullopt) << "never there";
  EXPECT_EQ(Pclntab::find(""), std::nullopt);
}

TEST(PclntabTest, TellsMachinesApart) {
  std::string table = made_up_table(kGo120);
  EXPECT_TRUE(Pclntab::read(table)->is_of_x86_64());
  put<uint8_t>(table, 6, 4);
  EXPECT_FALSE(Pclntab::read(table)->is_of_x86_64()) << "its instructions are 4 bytes long";
  EXPECT_FALSE(Pclntab::read(made_up_table(kGo120, 4))->is_of_x86_64());
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
  put<uint32_t>(table, 0x104, 0x200 - 0x100 - 16);  // cut off
  EXPECT_EQ(list(table), "main.b@4160+32 ");
  table = made_up_table(kGo120);
  put<uint32_t>(table, 0x144, 0x7fffffff);  // a name outside: the rest is as good
  EXPECT_EQ(list(table), "@4096+64 main.b@4160+32 ");
  table = made_up_table(kGo120);
  put<uint32_t>(table, 0x108, 0);  // does not ascend
  EXPECT_EQ(list(table), "main.b@4096+96 ");
}

TEST(PclntabTest, CutsANameWithoutAnEnd) {
  std::string table = made_up_table(kGo120) + std::string(10'000, 'n');
  put<uint32_t>(table, 0x164, 0x200 - 0x80);
  EXPECT_EQ(Pclntab::read(table)->function(1)->name, std::string(Pclntab::kNameMax, 'n'));
}

}  // namespace
}  // namespace dwell::unwind
