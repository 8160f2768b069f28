// Lines and inlined functions of programs that the machine's own compilers build.
#include "symbolize/line_process.h"

#include <gtest/gtest.h>

#include <random>

#include "symbolize/demangle.h"
#include "symbolize/workshop.h"

namespace dwell::symbolize {
namespace {

// Line numbers count from the first line behind R"(.
constexpr const char* kInlining = R"(int volatile sink;
#define INLINE static inline __attribute__((always_inline))
INLINE int innermost(int x) {
  sink = x;
  return x + 1;
}
INLINE int middle(int x) {
  return innermost(x) * 2;
}
INLINE int outermost(int x) {
  return middle(x) + 3;
}
__attribute__((noinline)) int holder(int x) {
  return outermost(x) - 1;
}
int main(int argc, char** argv) {
  (void)argv;
  return holder(argc);
}
)";
constexpr const char* kInliningChain = "innermost:4 middle:8 outermost:11 holder:14";

std::string describe(const SourceChain& chain) {
  std::string text;
  for (const SourceFrame& frame : chain)
    text += (text.empty() ? "" : " ") + demangle(frame.function) + ":" + std::to_string(frame.line);
  return text;
}

class LineProcessTest : public testing::Test {
 protected:
  DebugInfo info(const std::string& file) const {
    return {std::move(*open_for_reading(shop_.path(file))), {}, shop_.path(file), ""};
  }
  // The chains of each address of a function of `file`.
  std::vector<SourceChain> chains_in(const std::string& file, const std::string& function,
                                     const DebugInfo& debug) const {
    const uint64_t start = shop_.address_of(file, function);
    EXPECT_NE(start, 0u) << shop_.read("log");
    std::vector<uint64_t> addresses;
    for (uint64_t i = 0; i < kFunctionBytes; ++i) addresses.push_back(start + i);
    auto chains = look_up_lines(debug, addresses);
    EXPECT_TRUE(chains) << chains.error().message;
    return chains ? std::move(*chains) : std::vector<SourceChain>();
  }
  bool any_is(const std::vector<SourceChain>& chains, const std::string& wanted) const {
    std::string all;
    for (const SourceChain& chain : chains) {
      if (describe(chain) == wanted) return true;
      all += describe(chain) + "\n";
    }
    ADD_FAILURE() << "none is " << wanted << ":\n" << all;
    return false;
  }
  void expect_inlining(const std::string& compile) {
    shop_.write("p.c", kInlining);
    ASSERT_TRUE(shop_.run(compile + " -o p p.c")) << shop_.read("log");
    const auto chains = chains_in("p", "holder", info("p"));
    EXPECT_TRUE(any_is(chains, kInliningChain)) << compile;
    EXPECT_EQ(chains[0].back().file, shop_.path("p.c"));
  }
  static constexpr uint64_t kFunctionBytes = 16;
  Workshop shop_;
};

TEST_F(LineProcessTest, TellsTheChainOfInlinedFunctionsInnermostFirst) {
  for (const char* form : {"-gdwarf-5", "-gdwarf-4", "-gdwarf-3", "-gz=zlib"})
    expect_inlining(std::string("gcc -O2 -g ") + form);
}

// Without .debug_aranges: the units have to be listed.
TEST_F(LineProcessTest, FindsUnitsThatNoIndexLists) {
  if (!Workshop::has("clang-14")) GTEST_SKIP() << "clang-14 is not installed";
  expect_inlining("clang-14 -O2 -g");
}

TEST_F(LineProcessTest, NamesOverloadsByTheirLinkageName) {
  shop_.write("p.cc", R"(int volatile sink;
namespace deep {
struct Box {
  __attribute__((always_inline)) int put(int x) { sink = x; return x; }
  __attribute__((always_inline)) int put(long x) { sink = (int)x; return 2; }
};
__attribute__((noinline)) int holder(Box& box, long x) { return box.put(x) + 1; }
}
int main(int argc, char**) { deep::Box box; return deep::holder(box, argc); }
)");
  ASSERT_TRUE(shop_.run("g++ -O2 -g -o p p.cc")) << shop_.read("log");
  EXPECT_TRUE(any_is(chains_in("p", "_ZN4deep6holderERNS_3BoxEl", info("p")),
                     "deep::Box::put(long):5 deep::holder(deep::Box&, long):7"));
}

TEST_F(LineProcessTest, FollowsWhatWasInlinedFromAnotherUnit) {
  shop_.write("a.c", "int volatile sink;\nint inner(int x) {\n  sink = x;\n  return x;\n}\n");
  shop_.write("b.c",
              "int inner(int);\n__attribute__((noinline)) int holder(int x) {\n  return inner(x) + "
              "1;\n}\nint main(int n, char** v) { (void)v; return holder(n); }\n");
  ASSERT_TRUE(shop_.run("gcc -O2 -g -flto -o p a.c b.c")) << shop_.read("log");
  EXPECT_TRUE(any_is(chains_in("p", "holder", info("p")), "inner:3 holder:3"));
}

TEST_F(LineProcessTest, FindsNamesInTheAlternateFileOfDwz) {
  if (!Workshop::has("dwz")) GTEST_SKIP() << "dwz is not installed";
  shop_.write("p.c", kInlining);
  ASSERT_TRUE(
      shop_.run("gcc -O2 -g -o p p.c && gcc -O2 -g -DOTHER -o q p.c && "
                "dwz -m common -M common p q && readelf -SW p | grep -q gnu_debugaltlink"))
      << shop_.read("log");
  auto found = find_debug_info({shop_.path("p"), "", UINT64_MAX}, shop_.path("none"));
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->alternate);
  EXPECT_TRUE(any_is(chains_in("p", "holder", *found), kInliningChain));
  // By the symbol table the name is there all along, and without the alternate file nothing is lost
  // but names of inlined functions.
  ASSERT_TRUE(shop_.run("mv common gone"));
  found = find_debug_info({shop_.path("p"), "", UINT64_MAX}, shop_.path("none"));
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->alternate);
  EXPECT_NE(found->alternate_missing.find("common is not there"), std::string::npos)
      << found->alternate_missing;
  EXPECT_EQ(chains_in("p", "holder", *found)[0].back().line, 14u);
}

TEST_F(LineProcessTest, RefusesAnAlternateFileOfAnotherBuild) {
  if (!Workshop::has("dwz")) GTEST_SKIP() << "dwz is not installed";
  shop_.write("p.c", kInlining);
  ASSERT_TRUE(
      shop_.run("gcc -O2 -g -o p p.c && cp p q && dwz -m common -M common p q && "
                "cp common kept && gcc -g -Wl,--build-id=0x1234 -o common p.c"))
      << shop_.read("log");
  const auto found = find_debug_info({shop_.path("p"), "", UINT64_MAX}, shop_.path("none"));
  ASSERT_TRUE(found);
  EXPECT_NE(found->alternate_missing.find("of another build"), std::string::npos);
}

TEST_F(LineProcessTest, KnowsNothingOfAddressesOutside) {
  shop_.write("p.c", kInlining);
  ASSERT_TRUE(shop_.run("gcc -O2 -g -o p p.c")) << shop_.read("log");
  const uint64_t addresses[] = {0, UINT64_MAX};
  const auto chains = look_up_lines(info("p"), addresses);
  ASSERT_TRUE(chains) << chains.error().message;
  for (const SourceChain& chain : *chains) EXPECT_EQ(describe(chain), "");
}

// In the debug file of a stripped one, too, whose segments are junk.
TEST_F(LineProcessTest, NamesCodeWithoutLinesByTheSymbolTable) {
  shop_.write("p.c", kInlining);
  shop_.write("bare.c",
              "static __attribute__((noinline)) int bare(int x) { return x + 1; }\n"
              "int calls_bare(int x) { return bare(x); }\n");
  ASSERT_TRUE(
      shop_.run("gcc -O1 -c bare.c && gcc -O2 -g -o p p.c bare.o && "
                "objcopy --only-keep-debug p p.debug"))
      << shop_.read("log");
  const uint64_t address = shop_.address_of("p", "bare");
  const uint64_t addresses[] = {address, address + 100'000};
  for (const char* file : {"p", "p.debug"}) {
    const auto chains = look_up_lines(info(file), addresses);
    ASSERT_TRUE(chains) << chains.error().message;
    ASSERT_EQ((*chains)[0].size(), 1u) << file;
    EXPECT_EQ((*chains)[0][0].function, "bare") << file;
    EXPECT_EQ((*chains)[0][0].line, 0u) << file;
    EXPECT_TRUE((*chains)[1].empty()) << file;
  }
}

TEST_F(LineProcessTest, SaysThatAFileHasNoDebugInformation) {
  shop_.write("p.c", kInlining);
  ASSERT_TRUE(shop_.run("gcc -O2 -s -o p p.c"));
  const uint64_t addresses[] = {0x1000};
  const auto chains = look_up_lines(info("p"), addresses);
  ASSERT_FALSE(chains);
  EXPECT_NE(chains.error().message.find("DWARF"), std::string::npos) << chains.error().message;
}

TEST_F(LineProcessTest, GivesUpAtItsLimits) {
  shop_.write("p.c", kInlining);
  ASSERT_TRUE(shop_.run("gcc -O2 -g -o p p.c"));
  const std::vector<uint64_t> addresses(100, shop_.address_of("p", "holder"));
  auto chains = look_up_lines(info("p"), addresses, {.patience = std::chrono::seconds(0)});
  EXPECT_FALSE(chains);
  chains = look_up_lines(info("p"), addresses, {.answer_bytes = 100});
  ASSERT_FALSE(chains);
  EXPECT_NE(chains.error().message.find("took more than"), std::string::npos);
}

// libdw may crash, or say nonsense: an answer or an error, never the end of us.
TEST_F(LineProcessTest, SurvivesDamagedDebugInformation) {
  shop_.write("p.c", kInlining);
  ASSERT_TRUE(shop_.run("gcc -O2 -g -o p p.c && readelf -SW p > sections"));
  const std::string good = shop_.read("p");
  const uint64_t holder = shop_.address_of("p", "holder");
  const auto elf_fd = std::move(*open_for_reading(shop_.path("p")));
  auto elf = std::move(*ElfFile::read(*FileBytes::of_file(elf_fd.get(), "p")));
  ASSERT_TRUE(elf.read_sections());
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    std::string bad = good;
    for (const char* name : {".debug_info", ".debug_abbrev", ".debug_line", ".debug_rnglists"}) {
      const Section* section = elf.section(name);
      if (section == nullptr) continue;
      for (int i = 0; i < 1 + round / 10; ++i)
        bad[section->offset + random() % section->bytes] = static_cast<char>(random());
    }
    shop_.write("bad", bad);
    const uint64_t addresses[] = {holder, holder + 4};
    const auto chains =
        look_up_lines(info("bad"), addresses, {.patience = std::chrono::seconds(5)});
    EXPECT_TRUE(!chains || chains->size() == 2u);
  }
}

}  // namespace
}  // namespace dwell::symbolize
