// Go's table of functions in each of its forms, made by hand, and damaged.
#include "unwind/pclntab.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "unwind/go_table_builder.h"
#include "unwind/table.h"

namespace dwell::unwind {
namespace {

using Builder = GoTableBuilder;
constexpr uint64_t kText = Builder::kText;

template <typename Number>
void put(std::string& bytes, size_t at, Number value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

Builder two_functions(uint32_t form = Builder::kGo120, uint8_t pointer_bytes = 8) {
  Builder go(form, pointer_bytes);
  go.function("main.a", {{0, 0x40}});
  go.function("main.b", {{0x18, 0x20}}, Builder::kWritesPointer);
  return go;
}
constexpr const char* kBoth = "main.a@8192+64 main.b@8256+32 ";

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

TEST(PclntabTest, ReadsTheFormsOfGo116And118And120) {
  EXPECT_EQ(list(two_functions(Builder::kGo116).section()), kBoth);
  EXPECT_EQ(list(two_functions(Builder::kGo118).section()), kBoth);
  EXPECT_EQ(list(two_functions(Builder::kGo120).section()), kBoth);
}

TEST(PclntabTest, ReadsThoseOf32BitPrograms) {
  EXPECT_EQ(list(two_functions(Builder::kGo116, 4).section()), kBoth);
  EXPECT_EQ(list(two_functions(Builder::kGo120, 4).section()), kBoth);
}

TEST(PclntabTest, ReadsWhatAFunctionsRecordSaysOfItsFrame) {
  for (const uint32_t form : {Builder::kGo116, Builder::kGo118, Builder::kGo120}) {
    const std::string table = two_functions(form).section();
    const auto function = Pclntab::read(table)->function(1);
    ASSERT_TRUE(function);
    EXPECT_EQ(function->flags, Builder::kWritesPointer);
    EXPECT_EQ(function->frame_sizes.substr(0, 3), bytes({2 * (0x18 + 1), 0x20, 0}));
  }
}

TEST(PclntabTest, TakesTheStartOfTheTextFromOutsideWhereTheTableHasNone) {
  std::string table = two_functions().section();
  EXPECT_FALSE(Pclntab::read(table)->lacks_text_start());
  EXPECT_EQ(Pclntab::read(table, 0x401000)->function(1)->start, kText + 0x40) << "it has one";
  put<uint64_t>(table, Pclntab::read(table)->text_start_at(), 0);
  EXPECT_TRUE(Pclntab::read(table)->lacks_text_start());
  EXPECT_EQ(Pclntab::read(table)->text_bytes(), 0x60u);
  const auto read = Pclntab::read(table, 0x401000);
  EXPECT_FALSE(read->lacks_text_start());
  EXPECT_EQ(read->text_bytes(), 0x60u);
  EXPECT_EQ(read->function(1)->start, 0x401040u);
}

TEST(PclntabTest, LeavesTheAddressesOfGo116AsTheyAre) {
  const std::string table = two_functions(Builder::kGo116).section();
  const auto read = Pclntab::read(table, 0x401000);
  EXPECT_FALSE(read->lacks_text_start());
  EXPECT_EQ(read->function(1)->start, kText + 0x40);
}

TEST(PclntabTest, FindsATableAmongOtherBytes) {
  const std::string table = two_functions().section();
  EXPECT_EQ(Pclntab::find(table), 0u);
  EXPECT_EQ(Pclntab::find(std::string(48, 'x') + table), 48u);
  EXPECT_EQ(Pclntab::find(table.substr(0, 64) + table), 64u) << "the first is cut off";
  EXPECT_EQ(Pclntab::find(std::string(44, 'x') + table), std::nullopt) << "never there";
  EXPECT_EQ(Pclntab::find(""), std::nullopt);
}

TEST(PclntabTest, TellsMachinesApart) {
  std::string table = two_functions().section();
  EXPECT_TRUE(Pclntab::read(table)->is_of_x86_64());
  put<uint8_t>(table, 6, 4);
  EXPECT_FALSE(Pclntab::read(table)->is_of_x86_64()) << "its instructions are 4 bytes long";
  EXPECT_FALSE(Pclntab::read(two_functions(Builder::kGo120, 4).section())->is_of_x86_64());
}

TEST(PclntabTest, RefusesWhatIsNoTableOfAKnownForm) {
  EXPECT_EQ(list(""), "no pclntab of a form that is known");
  EXPECT_EQ(list(std::string(4096, 'x')), "no pclntab of a form that is known");
  EXPECT_EQ(list(two_functions(0xfffffffb).section()), "a pclntab of Go before 1.16");
  std::string table = two_functions().section();
  put<uint8_t>(table, 7, 3);
  EXPECT_EQ(list(table), "the header of the pclntab is damaged");
  table = two_functions().section();
  put<uint64_t>(table, 8, Pclntab::kFunctionsMax + 1);
  EXPECT_EQ(list(table), "the pclntab has 2000001 functions, limit 2000000");
  table = two_functions().section().substr(0, two_functions().index_at(5) - 1);
  EXPECT_EQ(list(table), "the pclntab is empty or cut off");
  EXPECT_EQ(list(Builder().section()), "the pclntab is empty or cut off");
}

TEST(PclntabTest, LeavesOutFunctionsThatMakeNoSense) {
  const Builder go = two_functions();
  std::string table = go.section();
  put<uint32_t>(table, go.index_at(1), 0xffffff00);  // outside
  EXPECT_EQ(list(table), "main.b@8256+32 ");
  table = go.section();
  put<uint32_t>(table, go.index_at(2), 0);  // does not ascend
  EXPECT_EQ(list(table), "main.b@8192+96 ");
  table = go.section().substr(0, go.record_at(1) + 41);  // up to its flags
  EXPECT_EQ(list(table), "main.a@8192+64 ");
}

TEST(PclntabTest, GivesNoNameThatLiesOutside) {
  const Builder go = two_functions();
  std::string table = go.section();
  put<uint32_t>(table, go.name_field_at(0), 0x7fffffff);
  EXPECT_EQ(list(table), "@8192+64 main.b@8256+32 ");
}

TEST(PclntabTest, CutsANameWithoutAnEnd) {
  const Builder go = two_functions();
  std::string table = go.section();
  put(table, go.name_field_at(1), static_cast<uint32_t>(table.size() - go.names_at()));
  EXPECT_EQ(Pclntab::read(table + "nnn")->function(1)->name, "nnn");
  table += std::string(10'000, 'n');
  EXPECT_EQ(Pclntab::read(table)->function(1)->name, std::string(Pclntab::kNameMax, 'n'));
}

}  // namespace
}  // namespace dwell::unwind
