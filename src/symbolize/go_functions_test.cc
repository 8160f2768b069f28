// Programs built by the machine's Go, stripped: the same names as the symbol table had, and rules
// that lead from each function to its caller.
#include "symbolize/go_functions.h"

#include "symbolize/symbol_loader.h"
#include "symbolize/unwind_data.h"
#include "symbolize/workshop.h"

namespace dwell::symbolize {
namespace {

constexpr const char* kProgram = R"(
package main

import "os"

//go:noinline
func inner(x int) int { return x * 3 }

//go:noinline
func outer(x int) int { return inner(x) + 1 }

type counter struct{}

//go:noinline
func (c *counter) count(x int) int { return outer(x) + 2 }

func main() { c := &counter{}; os.Exit(c.count(len(os.Args))) }
)";

class GoFunctionsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!Workshop::has("go")) GTEST_SKIP() << "go is not installed";
    shop_.write("p.go", kProgram);
  }
  // Strips by objcopy, not by the linker: then the addresses are those of the full program.
  void build(const std::string& flags) {
    ASSERT_TRUE(
        shop_.run("HOME=$PWD GOCACHE=$PWD/cache GO111MODULE=off GOTOOLCHAIN=local go build " +
                  flags + " -o full p.go && strip -s -o stripped full"))
        << shop_.read("log");
  }
  LoadedSymbols load(const std::string& name) {
    fd_ = std::move(*open_for_reading(shop_.path(name)));
    return load_symbols(*FileBytes::of_file(fd_.get(), name), shop_.path(name), {},
                        size_t{64} << 20);
  }
  void expect_names_and_rules() {
    const LoadedSymbols loaded = load("stripped");
    ASSERT_NE(loaded.table, nullptr) << loaded.reason;
    EXPECT_EQ(loaded.reason, "");
    const auto rules = compile_unwind_table(*FileBytes::of_file(fd_.get(), "stripped"));
    ASSERT_TRUE(rules) << rules.error().message;
    for (const char* name :
         {"main.inner", "main.outer", "main.main", "main.(*counter).count", "runtime.main"}) {
      const uint64_t address = shop_.address_of("full", name);
      ASSERT_NE(address, 0u) << name;
      const auto match = loaded.table->find(address + 1);
      ASSERT_TRUE(match) << name;
      EXPECT_EQ(match->name, name);
      EXPECT_EQ(match->address, address);
      EXPECT_EQ(match->how, Resolution::kGoPclntab);
      const unwind::Rule* rule = rules->find(address);
      ASSERT_NE(rule, nullptr) << name;
      EXPECT_EQ(rule->cfa_offset, 8) << name;
    }
  }
  Workshop shop_;
  Fd fd_;
};

TEST_F(GoFunctionsTest, KnowsTheFunctionsOfAStrippedProgram) {
  build("");
  expect_names_and_rules();
}

TEST_F(GoFunctionsTest, KnowsThoseOfAPositionIndependentProgram) {
  build("-buildmode=pie");
  expect_names_and_rules();
}

// The table lies in .data.rel.ro then, and of one linker a relocation alone says where the text
// begins.
TEST_F(GoFunctionsTest, KnowsThoseThatTheSystemsLinkerPutTogether) {
  build("-ldflags=-linkmode=external");
  expect_names_and_rules();
  build("-buildmode=pie -ldflags=-linkmode=external");
  expect_names_and_rules();
  if (!Workshop::has("ld.lld")) GTEST_SKIP() << "lld is not installed";
  build("-buildmode=pie -ldflags='-linkmode=external -extldflags=-fuse-ld=lld'");
  expect_names_and_rules();
}

// As Go's newer linkers leave it.
TEST_F(GoFunctionsTest, FindsTheStartOfTheTextWhereTheTableDoesNotSay) {
  build("");
  const auto with_start_zeroed = [&](const std::string& from) {
    std::string bytes = shop_.read(from);
    const auto elf = ElfFile::read(FileBytes::of_memory(bytes));
    ElfFile file = std::move(const_cast<ElfFile&>(*elf));
    EXPECT_TRUE(file.read_sections());
    const size_t at = file.section(".gopclntab")->offset + 24;
    std::fill_n(bytes.begin() + static_cast<ptrdiff_t>(at), 8, '\0');
    return bytes;
  };
  shop_.write("stripped", with_start_zeroed("stripped"));
  expect_names_and_rules();
  // With C around it the start cannot be known: no names rather than wrong ones.
  build("-ldflags=-linkmode=external");
  shop_.write("stripped", with_start_zeroed("stripped"));
  const LoadedSymbols loaded = load("stripped");
  EXPECT_NE(loaded.reason.find("where its text begins"), std::string::npos) << loaded.reason;
}

TEST_F(GoFunctionsTest, LeavesProgramsOfOtherLanguagesAlone) {
  shop_.write("p.c", speaking_program());
  ASSERT_TRUE(shop_.run("gcc -O1 -o full p.c && strip -s -o stripped full"));
  const LoadedSymbols loaded = load("stripped");
  EXPECT_EQ(loaded.reason, "no symbol table in the file");
}

}  // namespace
}  // namespace dwell::symbolize
