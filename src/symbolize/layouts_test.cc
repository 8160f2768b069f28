// Running programs of every layout that the linkers here can make: the addresses of their own
// functions, as they print them, get the right names.
#include <chrono>

#include "base/clock.h"
#include "symbolize/symbolizer.h"
#include "symbolize/workshop.h"

namespace dwell::symbolize {
namespace {

std::string name_at(Symbolizer& symbolizer, const ProcessKey& key, uint64_t ip,
                    bool return_address = false) {
  const LocationId id = symbolizer.locate_user(key, ip, return_address, monotonic_ns());
  return symbolizer.describe(id).function;
}

std::unique_ptr<Symbolizer> plain_symbolizer() {
  Options options;
  options.kernel = false;
  options.follow_mappings = false;
  return std::move(*Symbolizer::create(options));
}

struct Layout {
  const char* name;
  const char* flags;
  const char* needs = "ld";
};

class Layouts : public testing::TestWithParam<Layout> {};

TEST_P(Layouts, NamesFunctionsOfARunningProgram) {
  if (!Workshop::has(GetParam().needs)) GTEST_SKIP() << GetParam().needs << " is not installed";
  const Workshop shop;
  shop.write("p.c", speaking_program());
  if (!shop.run("gcc -O1 " + std::string(GetParam().flags) + " -o p p.c"))
    GTEST_SKIP() << "cannot link with " << GetParam().flags << ": " << shop.read("log");
  Target target({shop.path("p")});
  ASSERT_TRUE(target.wait_ready());
  const auto symbolizer = plain_symbolizer();
  const ProcessKey key = target.key();
  for (const char* function : {"inner", "outer", "main"}) {
    EXPECT_EQ(name_at(*symbolizer, key, target.at(function)), function);
    EXPECT_EQ(name_at(*symbolizer, key, target.at(function) + 1, true), function);
  }
  const FrameInfo frame =
      symbolizer->describe(symbolizer->locate_user(key, target.at("outer") + 2, false, 1));
  EXPECT_EQ(frame.offset, 2u);
  EXPECT_EQ(frame.how, Resolution::kSymtab);
  EXPECT_EQ(frame.address, shop.address_of("p", "outer") + 2);
  EXPECT_EQ(symbolizer->object(frame.object).path, shop.path("p"));
}

INSTANTIATE_TEST_SUITE_P(
    Linkers, Layouts,
    testing::Values(Layout{"pie", "-pie -fPIE"}, Layout{"no_pie", "-no-pie"},
                    Layout{"static", "-static"}, Layout{"static_pie", "-static-pie"},
                    Layout{"lld", "-fuse-ld=lld", "ld.lld"},
                    Layout{"lld_no_pie", "-fuse-ld=lld -no-pie", "ld.lld"},
                    Layout{"gold", "-fuse-ld=gold", "ld.gold"},
                    Layout{"text_segment", "-no-pie -Wl,-Ttext-segment=0x600000"},
                    Layout{"pie_text_segment", "-Wl,-Ttext-segment=0x10000"},
                    Layout{"huge_pages", "-Wl,-z,max-page-size=0x200000"},
                    Layout{"separate_code", "-Wl,-z,separate-code"},
                    Layout{"no_separate_code", "-Wl,-z,noseparate-code"}),
    [](const auto& layout) { return layout.param.name; });

TEST(Layout, NamesAFunctionInASecondExecutableSegment) {
  const Workshop shop;
  shop.write("p.c",
             "__attribute__((section(\".text2\"),noinline)) int far_away(int x) "
             "{ return x + 7; }\n"
             "#define main original_main\n" +
                 speaking_program() +
                 "#undef main\n"
                 "int main(int argc, char** argv) { printf(\"far_away %p\\n\", (void*)far_away);"
                 " return original_main(far_away(argc), argv); }\n");
  ASSERT_TRUE(shop.run("gcc -O1 -no-pie -Wl,--section-start=.text2=0x4000000 -o p p.c"));
  Target target({shop.path("p")});
  ASSERT_TRUE(target.wait_ready());
  const auto symbolizer = plain_symbolizer();
  EXPECT_EQ(name_at(*symbolizer, target.key(), target.at("far_away")), "far_away");
  EXPECT_EQ(name_at(*symbolizer, target.key(), target.at("inner")), "inner");
}

TEST(Layout, NamesFunctionsOnBothSidesOfASplitMapping) {
  const Workshop shop;
  shop.write("p.c", "#include <sys/mman.h>\n#include <stdint.h>\n#define main original_main\n" +
                        speaking_program() +
                        "#undef main\n"
                        "__attribute__((aligned(4096))) int own_page(int x) { return x + 9; }\n"
                        "__attribute__((aligned(4096))) int main(int argc, char** argv) {\n"
                        "  mprotect((void*)own_page, 4096, PROT_READ|PROT_WRITE|PROT_EXEC);\n"
                        "  printf(\"own_page %p\\nlast %p\\n\", (void*)own_page, (void*)main);\n"
                        "  return original_main(own_page(argc), argv); }\n");
  ASSERT_TRUE(shop.run("gcc -O1 -o p p.c"));
  Target target({shop.path("p")});
  ASSERT_TRUE(target.wait_ready());
  const auto symbolizer = plain_symbolizer();
  EXPECT_EQ(name_at(*symbolizer, target.key(), target.at("own_page")), "own_page");
  EXPECT_EQ(name_at(*symbolizer, target.key(), target.at("inner")), "inner");
  EXPECT_EQ(name_at(*symbolizer, target.key(), target.at("last")), "main");
}

TEST(Layout, NamesTextThatWasMovedOntoAnonymousPages) {
  const Workshop shop;
  shop.write("p.c", R"(
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
__attribute__((aligned(4096))) int before(int x) { return x; }
__attribute__((aligned(4096))) int moved(int x) { return x + 9; }
__attribute__((aligned(4096))) int main(void) {
  char c;
  void* copy = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(copy, (void*)moved, 4096);
  mprotect(copy, 4096, PROT_READ | PROT_EXEC);
  if (mremap(copy, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, (void*)moved) == MAP_FAILED) return 1;
  printf("moved %p\nbefore %p\nready\n", (void*)moved, (void*)before);
  fflush(stdout);
  return (int)read(0, &c, 1) + moved(1);
})");
  ASSERT_TRUE(shop.run("gcc -O1 -o p p.c"));
  Target target({shop.path("p")});
  ASSERT_TRUE(target.wait_ready());
  const auto symbolizer = plain_symbolizer();
  EXPECT_EQ(name_at(*symbolizer, target.key(), target.at("moved") + 1), "moved");
  EXPECT_EQ(name_at(*symbolizer, target.key(), target.at("before")), "before");
}

TEST(Layout, NamesA32BitProgram) {
  const Workshop shop;
  shop.write("p.s", R"(
  .globl _start, sleeper
  .type sleeper,@function
sleeper: movl $4,%eax; movl $1,%ebx; movl $text,%ecx; movl $6,%edx; int $0x80
  movl $3,%eax; xorl %ebx,%ebx; movl $buffer,%ecx; movl $1,%edx; int $0x80
  ret
  .size sleeper,.-sleeper
  .type _start,@function
_start: call sleeper; movl $1,%eax; int $0x80
  .size _start,.-_start
  .data
text: .ascii "ready\n"
buffer: .byte 0
)");
  if (!shop.run("gcc -m32 -nostdlib -static -no-pie -o p p.s"))
    GTEST_SKIP() << "cannot build 32-bit programs here";
  Target target({shop.path("p")});
  ASSERT_TRUE(target.wait_ready());
  const auto symbolizer = plain_symbolizer();
  EXPECT_EQ(name_at(*symbolizer, target.key(), shop.address_of("p", "sleeper") + 3), "sleeper");
}

TEST(Layout, MergesTwoProcessesOfOneProgram) {
  const Workshop shop;
  shop.write("p.c", speaking_program());
  ASSERT_TRUE(shop.run("gcc -O1 -pie -fPIE -o p p.c"));
  Target one({shop.path("p")}), two({shop.path("p")});
  ASSERT_TRUE(one.wait_ready());
  ASSERT_TRUE(two.wait_ready());
  const auto symbolizer = plain_symbolizer();
  EXPECT_EQ(symbolizer->locate_user(one.key(), one.at("inner"), false, 1),
            symbolizer->locate_user(two.key(), two.at("inner"), false, 1));
}

TEST(ReturnAddress, OfANoreturnCallBelongsToTheCaller) {
  const Workshop shop;
  shop.write("p.c", speaking_program());
  shop.write("call.s", R"(
  .globl caller, innocent
  .type caller,@function
caller: nop; call abort
  .size caller,.-caller
  .type innocent,@function
innocent: ret
  .size innocent,.-innocent
  .section .note.GNU-stack,"",@progbits
)");
  ASSERT_TRUE(shop.run("gcc -O1 -no-pie -o p p.c call.s"));
  Target target({shop.path("p")});
  ASSERT_TRUE(target.wait_ready());
  const auto symbolizer = plain_symbolizer();
  const uint64_t innocent = shop.address_of("p", "innocent");
  EXPECT_EQ(name_at(*symbolizer, target.key(), innocent, true), "caller");
  EXPECT_EQ(name_at(*symbolizer, target.key(), innocent, false), "innocent");
  const FrameInfo frame =
      symbolizer->describe(symbolizer->locate_user(target.key(), innocent, true, 1));
  EXPECT_EQ(frame.address, innocent);  // the real address is reported
  EXPECT_EQ(frame.offset, innocent - shop.address_of("p", "caller"));
}

TEST(UnknownFrame, KeepsItsAddressAndIsCountedOnceWithAReason) {
  const auto symbolizer = plain_symbolizer();
  const ProcessKey self = Target::key_of(static_cast<uint32_t>(getpid()));
  const LocationId id = symbolizer->locate_user(self, 0x1234, false, 1);
  EXPECT_EQ(symbolizer->describe(id).address, 0x1234u);
  symbolizer->describe(id);
  ASSERT_EQ(symbolizer->unresolved().size(), 1u);
  EXPECT_EQ(symbolizer->unresolved()[0].frames, 1u);
  EXPECT_FALSE(symbolizer->unresolved()[0].reason.empty());
  EXPECT_EQ(symbolizer->object(symbolizer->unresolved()[0].object).path, "[unknown]");
}

TEST(Descriptors, AreGivenBack) {
  const auto count = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  const ProcessKey self = Target::key_of(static_cast<uint32_t>(getpid()));
  const auto before = count();
  for (int i = 0; i < 3; ++i) {
    const auto symbolizer = plain_symbolizer();
    EXPECT_NE(name_at(*symbolizer, self, reinterpret_cast<uint64_t>(&speaking_program)), "");
    EXPECT_GT(count(), before);
  }
  EXPECT_EQ(count(), before);
}

TEST(Speed, AHundredThousandAddressesTakeNoLongTime) {
  const ProcessKey self = Target::key_of(static_cast<uint32_t>(getpid()));
  const auto symbolizer = plain_symbolizer();
  const auto start = std::chrono::steady_clock::now();
  const auto base = reinterpret_cast<uint64_t>(&speaking_program);
  std::vector<LocationId> ids;
  for (uint64_t i = 0; i < 100'000; ++i)
    ids.push_back(symbolizer->locate_user(self, base + i, false, 1));
  for (const LocationId id : ids) symbolizer->describe(id);
  // Measured: 0.2 s. What this catches is a search that is not logarithmic.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(ProcessInfo, TellsProgramAndArguments) {
  const Workshop shop;
  shop.write("p.c", speaking_program());
  ASSERT_TRUE(shop.run("gcc -O1 -o p p.c"));
  Target target({shop.path("p"), "a b", "c"});
  ASSERT_TRUE(target.wait_ready());
  const auto symbolizer = plain_symbolizer();
  const ProcessKey key = target.key();
  symbolizer->notice_process(key);
  target.stop();
  EXPECT_EQ(symbolizer->process_info(key).executable, shop.path("p"));
  EXPECT_EQ(symbolizer->process_info(key).command_line, shop.path("p") + " a b c");
}

}  // namespace
}  // namespace dwell::symbolize
