#include "symbolize/kernel_symbols.h"

#include <gtest/gtest.h>

namespace dwell::symbolize {
namespace {

constexpr const char* kKallsyms =
    "ffffffff81000000 T _stext\n"
    "ffffffff81000000 T _text\n"
    "ffffffff81000200 t second\n"
    "ffffffff81000200 t second_alias\n"
    "ffffffff81000100 T first\n"
    "ffffffff81000300 D data_not_text\n"
    "ffffffff81001000 T _etext\n"
    "ffffffff83000000 T boot_code\n"
    "ffffffffc0000100 t module_b\t[mod]\n"
    "ffffffffc0000000 t module_a\t[mod]\n"
    "ffffffffc0010000 t other\t[late]\n"
    "ffffffffc0020000 t bpf_prog_0123456789abcdef_nap\t[bpf]\n";
constexpr const char* kModules =
    "mod 4096 1 late, Live 0xffffffffc0000000 (OE)\n"
    "late 8192 0 - Live 0xffffffffc0010000\n"
    "nonsense\n";

std::string name(const KernelSymbols& symbols, uint64_t address) {
  const auto symbol = symbols.find(address);
  return symbol ? symbol->name + "[" + symbol->module + "]" : "";
}

TEST(Kallsyms, SortsAndEndsEverySymbol) {
  const auto symbols = KernelSymbols::parse(kKallsyms, kModules);
  EXPECT_EQ(name(symbols, 0xffffffff80ffffff), "");
  EXPECT_EQ(name(symbols, 0xffffffff81000150), "first[]");
  EXPECT_EQ(name(symbols, 0xffffffff810001ff), "first[]");
  EXPECT_EQ(name(symbols, 0xffffffff81000200), "second[]");
  EXPECT_EQ(name(symbols, 0xffffffff81000fff), "second[]");  // data is no end of text
  EXPECT_EQ(name(symbols, 0xffffffff81001000), "");          // clipped at _etext
  EXPECT_EQ(name(symbols, 0xffffffff83000000), "");          // boot code is gone
  EXPECT_EQ(name(symbols, 0xffffffffc00000ff), "module_a[mod]");
  EXPECT_EQ(name(symbols, 0xffffffffc0000fff), "module_b[mod]");
  EXPECT_EQ(name(symbols, 0xffffffffc0001000), "");  // clipped at the module's end
  EXPECT_EQ(name(symbols, 0xffffffffc0011fff), "other[late]");
  EXPECT_EQ(name(symbols, 0xffffffffc0012000), "");
  EXPECT_EQ(name(symbols, UINT64_MAX), "");
  ASSERT_NE(symbols.module_of(0xffffffffc0010001), nullptr);
  EXPECT_EQ(symbols.module_of(0xffffffffc0010001)->name, "late");
  EXPECT_EQ(symbols.module_of(0xffffffffc0012000), nullptr);
}

TEST(Kallsyms, SaysWhenTheKernelHidesAddresses) {
  const auto hidden = KernelSymbols::parse("0000000000000000 T _stext\n0000000000000000 T f\n", "");
  EXPECT_TRUE(hidden.hidden());
  EXPECT_EQ(name(hidden, 0), "");
  EXPECT_EQ(name(hidden, 0xffffffff81000000), "");
  EXPECT_FALSE(KernelSymbols::parse(kKallsyms, kModules).hidden());
  EXPECT_FALSE(KernelSymbols::parse("", "").hidden());
}

TEST(Kallsyms, TakesProgramsThatAreLoadedOverOthers) {
  auto symbols = KernelSymbols::parse(kKallsyms, kModules);
  symbols.add_bpf(0xffffffffc0030000, 0x40, "bpf_prog_1111111111111111_late_prog");
  EXPECT_EQ(name(symbols, 0xffffffffc003003f), "bpf_prog_1111111111111111_late_prog[bpf]");
  EXPECT_EQ(name(symbols, 0xffffffffc0030040), "");
  symbols.add_bpf(0xffffffffc0030010, 0x40, "bpf_prog_2222222222222222_other_prog");
  EXPECT_EQ(name(symbols, 0xffffffffc0030000), "");  // the former program is gone
  EXPECT_EQ(name(symbols, 0xffffffffc003004f), "bpf_prog_2222222222222222_other_prog[bpf]");
}

TEST(Kallsyms, OfAnyShapeIsHarmless) {
  for (const char* text : {"x\n", "ffffffff81000000\n", "ffffffff81000000 T\n", "zz T f\n",
                           "ffffffff81000000 TT f\n", "ffffffffffffffff T f\n", "1 T f\t[]\n"})
    KernelSymbols::parse(text, text).find(0xffffffff81000000);
  KernelSymbols::parse("", "m 18446744073709551615 1 - Live 0xffffffffc0000000\n");
}

TEST(KernelFunctionName, ShowsBpfProgramsByTheirOwnName) {
  EXPECT_EQ(kernel_function_name("bpf_prog_0123456789abcdef_nap"), "bpf_prog:nap");
  EXPECT_EQ(kernel_function_name("bpf_prog_0123456789abcdef"), "bpf_prog_0123456789abcdef");
  EXPECT_EQ(kernel_function_name("bpf_prog_load"), "bpf_prog_load");
  EXPECT_EQ(kernel_function_name("bpf_prog_get_stats_of_all_x"), "bpf_prog_get_stats_of_all_x");
  EXPECT_EQ(kernel_function_name("schedule"), "schedule");
}

}  // namespace
}  // namespace dwell::symbolize
