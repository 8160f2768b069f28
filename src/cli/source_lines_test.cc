// A recording of a program that was really built: its frames get lines and inlined functions, and
// keep their nanoseconds.
#include "cli/source_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "export/export.h"
#include "profile/profile_builder.h"
#include "symbolize/elf_file.h"
#include "symbolize/workshop.h"

namespace dwell::cli {
namespace {

using symbolize::Workshop;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kProgram = R"(int volatile sink;
static inline __attribute__((always_inline)) int inner(int x) {
  sink = x;
  return x + 1;
}
__attribute__((noinline)) int holder(int x) {
  return inner(x) * 2;
}
int main(int argc, char** argv) {
  (void)argv;
  return holder(argc) + 1;
}
)";

class SourceLinesTest : public testing::Test {
 protected:
  void SetUp() override {
    shop_.write("p.c", kProgram);
    ASSERT_TRUE(
        shop_.run("gcc -g -O2 -Wl,--build-id=0xabcdef -o p p.c && "
                  "objdump -d --no-show-raw-insn p > listing"))
        << shop_.read("log");
    holder_ = shop_.address_of("p", "holder");
    // Behind the call in main.
    call_end_ = std::stoull(shop_.output("grep -A1 'call.*<holder>' listing | tail -1 | "
                                         "cut -d: -f1 | tr -d ' '"),
                            nullptr, 16);
  }
  // One wait at the store of `inner`, called by main.
  Profile recording(const std::string& build_id = "abcdef", bool named = true) {
    ProfileBuilder b;
    const uint32_t program = b.module(shop_.path("p"), build_id, ModuleKind::kFile);
    const uint32_t kernel = b.module("[kernel]", "", ModuleKind::kKernel);
    Frame frames[] = {{.function = b.string("schedule"),
                       .module = kernel,
                       .address = 0xffffffff81000000,
                       .how = Resolution::kKallsyms,
                       .kind = FrameKind::kKernel},
                      {.module = program, .address = holder_},
                      {.module = program, .address = call_end_}};
    if (named)
      for (int i : {1, 2}) {
        frames[i].function = b.string(i == 1 ? "holder" : "main");
        frames[i].how = Resolution::kSymtab;
      }
    const uint32_t ids[] = {b.frame(frames[0]), b.frame(frames[1]), b.frame(frames[2])};
    const uint32_t process = b.process({.pid = 7, .comm = b.string("p")});
    const uint32_t thread = b.thread({.process = process,
                                      .tid = 7,
                                      .comm = b.string("p"),
                                      .times = {.alive_ns = 100, .blocked_ns = 100},
                                      .schedstat = std::nullopt});
    Row row{.thread = thread, .stack = b.stack(ids, true, false), .count = 1, .blocked_ns = 100};
    b.add(row);
    b.facts().window.end_unix_ns = UINT64_MAX;
    if (!named) b.facts().unresolved = {{program, 2, "stripped", "do not"}};
    return std::move(b).finish();
  }
  static Profile lined(Profile profile, const SourceOptions& options) {
    return add_source_lines(std::move(profile), options).value();
  }
  static std::vector<std::string> stack_of(const Profile& profile) {
    std::vector<std::string> texts;
    for (const uint32_t index : profile.stacks[0].frames) {
      const Frame& frame = profile.frames[index];
      const std::string& file = profile.text(frame.file);
      texts.push_back(profile.text(frame.function) + (frame.inlined ? " inlined" : "") +
                      (frame.line == 0 ? ""
                                       : " " + file.substr(file.rfind('/') + 1) + ":" +
                                             std::to_string(frame.line)));
    }
    return texts;
  }
  Workshop shop_;
  uint64_t holder_ = 0;
  uint64_t call_end_ = 0;
};

TEST_F(SourceLinesTest, TellsTheLineOfEachFrame) {
  const Profile profile = lined(recording(), {.lines = true});
  EXPECT_THAT(stack_of(profile), ElementsAre("schedule", "holder p.c:7", "main p.c:11"));
  EXPECT_THAT(profile.options, ElementsAre("report-lines=yes"));
  EXPECT_EQ(profile.warnings.size(), 0u);
}

TEST_F(SourceLinesTest, GivesInlinedFunctionsFramesOfTheirOwn) {
  const Profile profile = lined(recording(), {.lines = true, .inlined = true});
  EXPECT_THAT(stack_of(profile),
              ElementsAre("schedule", "inner inlined p.c:3", "holder p.c:7", "main p.c:11"));
  EXPECT_EQ(totals(profile).off_cpu_ns, totals(recording()).off_cpu_ns);
  EXPECT_EQ(folded(profile),
            "p;p;main (p.c:11);holder (p.c:7);inner (p.c:3)_[i];schedule_[k] 100\n");
  EXPECT_THAT(stack_of(lined(recording(), {.inlined = true})),
              ElementsAre("schedule", "inner inlined", "holder", "main"));
}

TEST_F(SourceLinesTest, NamesFramesThatHadNoNameWhenTheyWereRecorded) {
  const Profile profile = lined(recording("abcdef", false), {.lines = true});
  EXPECT_THAT(stack_of(profile), ElementsAre("schedule", "holder p.c:7", "main p.c:11"));
  EXPECT_TRUE(profile.unresolved.empty());
}

TEST_F(SourceLinesTest, KnowsAFileWithoutABuildIdByItsFunctions) {
  ASSERT_TRUE(shop_.run("objcopy -R .note.gnu.build-id p"));
  EXPECT_THAT(stack_of(lined(recording(""), {.lines = true})),
              ElementsAre("schedule", "holder p.c:7", "main p.c:11"));
  // Elsewhere mapped at that path, with other functions at these addresses.
  ASSERT_TRUE(
      shop_.run("sed -i 's/holder/keeper/; s/main/start/; $ a int main(void){return 0;}' "
                "p.c && sed -i 's/holder/keeper/' p.c && gcc -g -O2 -Wl,--build-id=none "
                "-o p p.c"))
      << shop_.read("log");
  const Profile other = lined(recording(""), {.lines = true});
  EXPECT_THAT(stack_of(other), ElementsAre("schedule", "holder", "main"));
  ASSERT_EQ(other.warnings.size(), 1u);
  EXPECT_THAT(other.warnings[0], HasSubstr("its functions are others"));
}

TEST_F(SourceLinesTest, SaysOfWhichModulesItHasNoLines) {
  const Profile other = lined(recording("123456"), {.lines = true, .inlined = true});
  EXPECT_THAT(stack_of(other), ElementsAre("schedule", "holder", "main"));
  ASSERT_EQ(other.warnings.size(), 1u);
  EXPECT_EQ(other.warnings[0], "source lines of " + shop_.path("p") +
                                   " (2 addresses): another build of it is there now");
  ASSERT_TRUE(shop_.run("strip -s p"));
  const Profile stripped = lined(recording(), {.lines = true});
  ASSERT_EQ(stripped.warnings.size(), 1u);
  EXPECT_THAT(stripped.warnings[0], HasSubstr("it has no debug information; install"));
}

}  // namespace
}  // namespace dwell::cli
