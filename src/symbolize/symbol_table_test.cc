#include "symbolize/symbol_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "symbolize/symbol_choice.h"

namespace dwell::symbolize {
namespace {

class Table {
 public:
  Table& add(const std::string& name, uint64_t address, uint64_t bytes,
             Binding binding = Binding::kGlobal, uint64_t reach = 0,
             Resolution how = Resolution::kSymtab) {
    // Sizes are cut at 32 bits, ends are told from the start.
    symbols_.push_back({address, static_cast<uint32_t>(bytes),
                        static_cast<uint32_t>(reach > address ? reach - address : 0),
                        names_.add(name), binding, true, how});
    return *this;
  }
  std::string at(uint64_t address) const {
    auto symbols = symbols_;
    const SymbolTable forward(symbols, names_);
    std::ranges::reverse(symbols);
    const SymbolTable backward(symbols, names_);
    const auto match = forward.find(address);
    const auto same = backward.find(address);
    EXPECT_EQ(match ? match->name : "", same ? same->name : "") << "depends on the order of input";
    return match ? std::string(match->name) : "";
  }

 private:
  std::vector<Symbol> symbols_;
  SymbolNames names_;
};

TEST(SymbolTableTest, ASizedSymbolNeverMatchesPastItsEnd) {
  const Table table = Table().add("f", 0x1000, 0x10).add("g", 0x2000, 0x10);
  EXPECT_EQ(table.at(0x0fff), "");
  EXPECT_EQ(table.at(0x1000), "f");
  EXPECT_EQ(table.at(0x100f), "f");
  EXPECT_EQ(table.at(0x1010), "");
  EXPECT_EQ(table.at(0x2010), "");
}

TEST(SymbolTableTest, AnUnsizedSymbolReachesToTheNextOneOrTheEndOfItsSection) {
  const Table table = Table()
                          .add("f", 0x1000, 0, Binding::kGlobal, 0x1800)
                          .add("g", 0x1200, 0, Binding::kGlobal, 0x1800);
  EXPECT_EQ(table.at(0x11ff), "f");
  EXPECT_EQ(table.at(0x1200), "g");
  EXPECT_EQ(table.at(0x17ff), "g");
  EXPECT_EQ(table.at(0x1800), "");
}

TEST(SymbolTableTest, AnUnsizedExportedSymbolMatchesItsExactStartOnly) {
  const Table table = Table().add("f", 0x1000, 0, Binding::kGlobal, 0, Resolution::kDynsym);
  EXPECT_EQ(table.at(0x1000), "f");
  EXPECT_EQ(table.at(0x1001), "");
}

TEST(SymbolTableTest, ANestedSymbolWinsInsideItself) {
  const Table table = Table().add("big", 0x1000, 0x100).add("inner", 0x1020, 0x10);
  EXPECT_EQ(table.at(0x1010), "big");
  EXPECT_EQ(table.at(0x1028), "inner");
  EXPECT_EQ(table.at(0x1080), "big");
  EXPECT_EQ(table.at(0x1100), "");
}

TEST(SymbolTableTest, SymbolsThatOverlapWithoutNestingEachKeepTheirEnd) {
  const Table table = Table().add("a", 0x1000, 0x30).add("b", 0x1020, 0x30);
  EXPECT_EQ(table.at(0x101f), "a");
  EXPECT_EQ(table.at(0x1020), "b");
  EXPECT_EQ(table.at(0x104f), "b");
  EXPECT_EQ(table.at(0x1050), "");
}

TEST(SymbolTableTest, ALabelInsideAFunctionIsNoFunction) {
  const Table table =
      Table().add("f", 0x1000, 0x100).add("loop", 0x1040, 0, Binding::kLocal, 0x2000);
  EXPECT_EQ(table.at(0x1050), "f");
}

TEST(SymbolTableTest, PicksThePlainestOfSeveralNames) {
  const Table foo = Table()
                        .add("__GI_foo", 0x1000, 8, Binding::kLocal)
                        .add("foo", 0x1000, 8, Binding::kGlobal)
                        .add("foo_old", 0x1000, 8, Binding::kWeak);
  EXPECT_EQ(foo.at(0x1000), "foo");
  EXPECT_EQ(Table().add("__read", 1, 8).add("read", 1, 8, Binding::kWeak).at(1), "__read");
  EXPECT_EQ(Table().add("_x", 1, 8).add("x@@V2", 1, 8).add("x", 1, 8).at(1), "x");
  EXPECT_EQ(Table().add("f.cold", 1, 8).add("ff", 1, 8).at(1), "ff");
  EXPECT_EQ(Table().add("b", 1, 8).add("a", 1, 8).at(1), "a");
  EXPECT_EQ(Table().add("unsized", 1, 0).add("sized_and_longer", 1, 8).at(1), "sized_and_longer");
}

TEST(SymbolTableTest, HoldsAtTheEndsOfTheAddressSpace) {
  const Table table = Table().add("first", 0, 0x10).add("last", UINT64_MAX - 15, 0xffff);
  EXPECT_EQ(table.at(0), "first");
  EXPECT_EQ(table.at(UINT64_MAX), "last");
}

TEST(SymbolTableTest, LooksUpFastHoweverDeeplySymbolsNest) {
  std::vector<Symbol> symbols;
  SymbolNames names;
  const uint32_t name = names.add("f");
  constexpr uint32_t kDepth = 200'000;
  for (uint32_t i = 0; i < kDepth; ++i)
    symbols.push_back({i, 2 * (kDepth - i), 0, name, Binding::kGlobal, true, Resolution::kSymtab});
  const SymbolTable table(symbols, names);
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 100'000; ++i) table.find(2 * kDepth - 1);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

// Sizes, gaps, labels and alike ones mixed so that every rule is met.
std::vector<Symbol> random_symbols(std::mt19937_64& random, SymbolNames& names) {
  std::vector<Symbol> symbols;
  const size_t count = random() % 60;
  for (size_t i = 0; i < count; ++i) {
    const bool unsized = random() % 4 == 0;
    const std::string name = std::string(random() % 3, '_') + char('a' + random() % 8);
    symbols.push_back({.address = 100 + random() % 90,
                       .bytes = unsized ? 0 : static_cast<uint32_t>(1 + random() % 40),
                       .reach = unsized ? 50u : 0u,
                       .name = names.add(name),
                       .binding = static_cast<Binding>(random() % 3)});
  }
  return symbols;
}

TEST(SymbolChoice, FindsForWhatIsWantedWhatTheWholeTableFinds) {
  std::mt19937_64 random(1);
  size_t found = 0;
  for (int round = 0; round < 3000; ++round) {
    SymbolNames names;
    const std::vector<Symbol> symbols = random_symbols(random, names);
    std::vector<uint64_t> wanted;
    for (size_t i = random() % 12; i > 0; --i) wanted.push_back(90 + random() % 160);
    std::ranges::sort(wanted);
    auto held = symbols;
    keep_holders(held, wanted);
    const SymbolTable whole(symbols, names), part(held, names);
    for (const uint64_t address : wanted) {
      const auto expected = whole.find(address), match = part.find(address);
      ASSERT_EQ(match.has_value(), expected.has_value()) << "round " << round << " at " << address;
      if (!match) continue;
      ++found;
      EXPECT_EQ(match->name, expected->name) << "round " << round << " at " << address;
      EXPECT_EQ(match->address, expected->address) << "round " << round << " at " << address;
    }
    EXPECT_LE(part.size(), wanted.size());
  }
  EXPECT_GT(found, 5000u);
}

TEST(SymbolChoice, HoldsAtTheEndsOfTheAddressSpace) {
  SymbolNames names;
  const uint32_t name = names.add("f");
  std::vector<Symbol> symbols{{.address = 0, .bytes = 1, .name = name},
                              {.address = UINT64_MAX - 1, .bytes = 0xffff, .name = name},
                              {.address = UINT64_MAX, .bytes = 0, .reach = 7, .name = name}};
  const uint64_t wanted[] = {0, 1, UINT64_MAX - 1, UINT64_MAX};
  keep_holders(symbols, wanted);
  const SymbolTable table(symbols, names);
  EXPECT_EQ(table.find(0)->address, 0u);
  EXPECT_FALSE(table.find(1));
  EXPECT_EQ(table.find(UINT64_MAX - 1)->address, UINT64_MAX - 1);
  EXPECT_TRUE(table.find(UINT64_MAX));
}

}  // namespace
}  // namespace dwell::symbolize
