#include "export/stack_health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "export/export.h"
#include "export/golden.h"
#include "export/runtimes.h"
#include "export/small_profile.h"
#include "profile/profile_builder.h"
#include "profile/random_profile.h"

namespace dwell {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Stacks of one process, given by the modules of their frames, leaf first; an address each.
class Stacks {
 public:
  explicit Stacks(const char* executable = "/usr/bin/program") {
    const uint32_t process = builder_.process(
        {.pid = 7, .comm = builder_.string("program"), .executable = builder_.string(executable)});
    Thread thread;
    thread.process = process;
    thread.tid = 7;
    thread_ = builder_.thread(thread);
  }
  uint32_t module(const char* path, ModuleKind kind = ModuleKind::kFile) {
    return builder_.module(path, "", kind);
  }
  void add(const std::vector<uint32_t>& modules, const Walk& walk, uint64_t ns,
           Resolution how = Resolution::kSymtab, const char* function = "f") {
    std::vector<uint32_t> frames;
    for (const uint32_t module : modules)
      frames.push_back(
          builder_.frame({.function = how == Resolution::kNone ? 0 : builder_.string(function),
                          .module = module,
                          .address = next_address_ += 16,
                          .how = how}));
    const uint32_t stack = builder_.stack(frames, is_root(walk.end), false, walk);
    builder_.add({.thread = thread_, .stack = stack, .count = 1, .blocked_ns = ns});
  }
  void add_lost(const char* placeholder, uint64_t ns) {
    const uint32_t frame = builder_.placeholder(placeholder);
    builder_.add({.thread = thread_,
                  .stack = builder_.stack({&frame, 1}, false, false),
                  .count = 1,
                  .blocked_ns = ns});
  }
  ProfileBuilder& builder() { return builder_; }
  Profile finish() { return std::move(builder_).finish(); }

 private:
  ProfileBuilder builder_;
  uint32_t thread_ = 0;
  uint64_t next_address_ = 0x1000;
};

const ModuleHealth& of(const StackHealth& health, uint32_t module) {
  static const ModuleHealth kNone;
  for (const ModuleHealth& found : health.modules)
    if (found.module == module) return found;
  ADD_FAILURE() << "no module " << module;
  return kNone;
}

TEST(StackHealth, LooksLikeTheGoldenFile) {
  expect_golden("small.health.txt", stacks_health(small_profile()));
}

TEST(StackHealth, TellsPerModuleHowItsFramesWereFound) {
  Stacks stacks;
  const uint32_t libc = stacks.module("/lib/libc.so.6"), app = stacks.module("/bin/app");
  stacks.add({libc, app, app}, {WalkEnd::kRoot, {0b010, 0}}, 300);
  stacks.add({libc, app}, {WalkEnd::kRoot, {}}, 50);
  const StackHealth health = stack_health(stacks.finish());
  EXPECT_EQ(of(health, libc).by_unwind_data.frames, 2u);
  EXPECT_EQ(of(health, libc).by_unwind_data.time_ns, 350u);
  EXPECT_EQ(of(health, libc).by_pointer.frames, 0u);
  EXPECT_EQ(of(health, app).all.time_ns, 350u) << "two frames of one stack are one time";
  EXPECT_EQ(of(health, app).by_pointer.frames, 1u);
  EXPECT_EQ(of(health, app).by_pointer.time_ns, 300u);
  EXPECT_EQ(of(health, app).by_unwind_data.frames, 2u) << "the root frame too";
  EXPECT_EQ(health.whole_ns, 350u);
  EXPECT_EQ(health.by_pointer_ns, 300u);
  EXPECT_EQ(of(health, app).cut_remedy, "");
}

TEST(StackHealth, DoesNotTakeInlinedFunctionsForSteps) {
  Stacks stacks;
  const uint32_t app = stacks.module("/bin/app"), other = stacks.module("/bin/other");
  stacks.add({app, app, other}, {WalkEnd::kRoot, {0b01, 0}}, 7);
  Profile profile = stacks.finish();
  profile.frames[0].inlined = true;  // into the second: the walker saw two frames
  const StackHealth health = stack_health(profile);
  EXPECT_EQ(of(health, app).by_pointer.frames, 1u);
  EXPECT_EQ(of(health, app).all.frames, 1u);
  EXPECT_EQ(of(health, other).by_unwind_data.frames, 1u);
  EXPECT_EQ(nlohmann::json::parse(json(profile))["stacks"][0]["by_pointer"],
            nlohmann::json::array({1}));
}

TEST(StackHealth, SendsTheBuilderOfCodeWithNeitherToTheRightFlags) {
  Stacks stacks;
  const uint32_t libc = stacks.module("/lib/libc.so.6"), bare = stacks.module("/bin/bare");
  stacks.add({libc, bare}, {WalkEnd::kBadPointer, {}}, 40);
  const StackHealth health = stack_health(stacks.finish());
  EXPECT_EQ(health.cut_ns(), 40u);
  EXPECT_EQ(of(health, bare).cut.frames, 1u);
  EXPECT_EQ(of(health, bare).cut_end, WalkEnd::kBadPointer);
  EXPECT_THAT(of(health, bare).cut_remedy, HasSubstr("-fno-omit-frame-pointer"));
  EXPECT_EQ(of(health, libc).cut.frames, 0u);
}

TEST(StackHealth, BlamesTheFrameWhosePointerLeadsToNoAddress) {
  Stacks stacks;
  const uint32_t bare = stacks.module("/bin/bare");
  stacks.add({bare}, {WalkEnd::kBadIp, {0b1, 0}}, 2);
  const StackHealth health = stack_health(stacks.finish());
  EXPECT_EQ(of(health, bare).cut_end, WalkEnd::kBadPointer);
  EXPECT_EQ(of(health, bare).by_pointer.frames, 0u);
}

TEST(StackHealth, DoesNotBlameTheCallerOfCodeThatIsTooNew) {
  Stacks stacks;
  const uint32_t node = stacks.module("/usr/bin/node");
  const uint32_t nowhere = stacks.module("[unknown]", ModuleKind::kUnknown);
  stacks.add({node, nowhere}, {WalkEnd::kNoMapping, {0b01, 0}}, 40, Resolution::kNone);
  const StackHealth health = stack_health(stacks.finish());
  EXPECT_EQ(of(health, node).cut.frames, 0u);
  EXPECT_EQ(of(health, node).by_pointer.frames, 1u);
  EXPECT_EQ(of(health, nowhere).cut_end, WalkEnd::kNoMapping);
}

TEST(StackHealth, DoesNotBlameTheFrameAtTheLimitOfDepth) {
  Stacks stacks;
  const uint32_t app = stacks.module("/bin/app");
  stacks.add({app, app}, {WalkEnd::kTruncated, {}}, 40);
  const StackHealth health = stack_health(stacks.finish());
  EXPECT_EQ(of(health, app).cut.frames, 0u);
  EXPECT_EQ(of(health, app).by_unwind_data.frames, 1u);
  EXPECT_EQ(health.cut_ns(), 40u);
}

TEST(StackHealth, CountsLostUserStacksAndNotThoseOfTheKernel) {
  Stacks stacks;
  stacks.add_lost("[user stack lost: store full]", 5);
  stacks.add_lost("[kernel stack lost: store full]", 70);
  stacks.add_lost("(new thread)", 700);
  const StackHealth health = stack_health(stacks.finish());
  EXPECT_EQ(health.user_time_ns, 5u);
  EXPECT_EQ(health.lost_ns, 5u);
  EXPECT_EQ(health.cut_ns(), 0u);
}

TEST(StackHealth, NamesTheFlagOfEachRuntimeWithoutAMap) {
  const struct {
    const char* executable;
    const char* library;
    const char* flag;
  } kCases[] = {
      {"/usr/bin/node", nullptr, "--perf-basic-prof"},
      {"/usr/lib/jvm/java-17/bin/java", nullptr, "-XX:+DumpPerfMapAtExit"},
      {"/usr/bin/embeds", "/opt/jdk/lib/server/libjvm.so", "jcmd PID Compiler.perfmap"},
      {"/usr/bin/dotnet", nullptr, "DOTNET_PerfMapEnabled=1"},
      {"/srv/app", "/usr/share/dotnet/shared/libcoreclr.so", "DOTNET_PerfMapEnabled=1"},
      {"/usr/bin/electron", "/usr/lib/libnode.so.108", "--perf-basic-prof"},
      {"/usr/bin/nodes-of-mine", nullptr, "/tmp/perf-PID.map"},
  };
  for (const auto& c : kCases) {
    Stacks stacks(c.executable);
    const uint32_t code = stacks.module("[anon]", ModuleKind::kAnonymous);
    stacks.add({code, code}, {WalkEnd::kRootPointer, {0b11, 0}}, 9, Resolution::kNone);
    if (c.library != nullptr) stacks.add({stacks.module(c.library)}, {WalkEnd::kRoot, {}}, 1);
    const StackHealth health = stack_health(stacks.finish());
    ASSERT_EQ(health.hints.size(), 1u) << c.executable;
    EXPECT_EQ(health.hints[0].unnamed_ns, 9u);
    EXPECT_THAT(health.hints[0].remedy, HasSubstr(c.flag)) << c.executable;
    EXPECT_THAT(health.hints[0].remedy, Not(HasSubstr("PreserveFramePointer")));
  }
}

TEST(StackHealth, AsksForTheFlagThatTellsInterpretedFunctionsApart) {
  Stacks stacks;
  const uint32_t node = stacks.module("/usr/bin/node");
  stacks.add({node, node}, {WalkEnd::kRoot, {}}, 9, Resolution::kSymtab,
             "Builtins_InterpreterEntryTrampoline");
  const StackHealth health = stack_health(stacks.finish());
  ASSERT_EQ(health.hints.size(), 1u);
  EXPECT_EQ(health.hints[0].unnamed_ns, 9u);
  EXPECT_THAT(health.hints[0].remedy, HasSubstr("--interpreted-frames-native-stack"));
}

TEST(StackHealth, DoesNotAskForAFlagThatIsGiven) {
  Stacks stacks;
  const uint32_t node = stacks.module("/usr/bin/node");
  const uint32_t code = stacks.module("[jit]", ModuleKind::kJit);
  // What node runs at its own start goes through the shared trampoline, flag or not.
  stacks.add({node, node}, {WalkEnd::kRoot, {}}, 9, Resolution::kSymtab,
             "Builtins_InterpreterEntryTrampoline");
  stacks.add({code, node}, {WalkEnd::kRoot, {}}, 90, Resolution::kPerfMap, "JS:~main app.js:1:1");
  EXPECT_THAT(stack_health(stacks.finish()).hints, IsEmpty());
}

TEST(StackHealth, KnowsAnInterpreterInItsOwnRuntimeOnly) {
  Stacks stacks;
  stacks.add({stacks.module("/bin/app")}, {WalkEnd::kRoot, {}}, 9, Resolution::kSymtab,
             "Builtins_InterpreterEntryTrampoline");
  stacks.add({stacks.module("/usr/bin/dotnet")}, {WalkEnd::kRoot, {}}, 9, Resolution::kNone);
  EXPECT_THAT(stack_health(stacks.finish()).hints, IsEmpty());
}

TEST(StackHealth, SendsJavaWithoutFramePointersToItsFlag) {
  Stacks stacks("/usr/bin/java");
  const uint32_t code = stacks.module("[jit]", ModuleKind::kJit);
  stacks.add({code}, {WalkEnd::kBadPointer, {}}, 9);
  const StackHealth health = stack_health(stacks.finish());
  ASSERT_EQ(health.hints.size(), 1u);
  EXPECT_EQ(health.hints[0].remedy, "start it with -XX:+PreserveFramePointer");
  EXPECT_EQ(health.hints[0].cut_ns, 9u);
}

TEST(StackHealth, HasNoHintForCodeThatHasNames) {
  Stacks stacks("/usr/bin/node");
  const uint32_t code = stacks.module("[jit]", ModuleKind::kJit);
  stacks.add({code, code}, {WalkEnd::kRootPointer, {0b11, 0}}, 9, Resolution::kPerfMap);
  EXPECT_THAT(stack_health(stacks.finish()).hints, IsEmpty());
}

TEST(StackHealth, SendsTheUserOfAStrippedBinaryToItsSymbols) {
  Stacks stacks;
  const uint32_t app = stacks.module("/bin/app");
  stacks.add({app}, {WalkEnd::kRoot, {}}, 9, Resolution::kNone);
  const StackHealth health = stack_health(stacks.finish());
  EXPECT_EQ(of(health, app).unnamed.frames, 1u);
  EXPECT_THAT(of(health, app).unnamed_remedy, HasSubstr("find-dbgsym-packages /bin/app"));
  EXPECT_EQ(health.unnamed_ns, 9u);
}

TEST(StackHealth, SaysOfOldRecordingsOnlyWhatTheyHold) {
  Profile profile = small_profile();
  for (Stack& stack : profile.stacks) stack.walk = {};
  const StackHealth health = stack_health(profile);
  EXPECT_FALSE(health.has_walks);
  EXPECT_EQ(health.whole_ns, 18'495'000'000u);
  EXPECT_THAT(table(profile), Not(HasSubstr("frame pointer")));
}

TEST(StackHealth, IsTheSameInTheJsonDocument) {
  const nlohmann::json d = nlohmann::json::parse(json(small_profile()));
  const nlohmann::json& health = d["stack_health"];
  const StackHealth expected = stack_health(small_profile());
  EXPECT_EQ(health["whole_ns"], expected.whole_ns);
  EXPECT_EQ(health["cut_ns"], expected.cut_ns());
  ASSERT_EQ(health["modules"].size(), expected.modules.size());
  EXPECT_EQ(health["modules"][0]["unwind_data"]["frames"],
            expected.modules[0].by_unwind_data.frames);
  for (const nlohmann::json& stack : d["stacks"])
    for (const nlohmann::json& at : stack["by_pointer"])
      EXPECT_EQ(d["frames"][stack["frames"][at.get<size_t>()].get<size_t>()]["kind"], "user");
}

TEST(StackHealth, BearsAnyProfile) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    const Profile profile = random_profile({.seed = seed, .hostile_names = seed % 2 == 0});
    const StackHealth health = stack_health(profile);
    EXPECT_LE(health.whole_ns + health.lost_ns, health.user_time_ns);
    uint64_t ends_ns = 0;
    for (const WalkEndShare& share : health.ends) ends_ns += share.time_ns;
    EXPECT_EQ(ends_ns, health.user_time_ns);
    for (const ModuleHealth& module : health.modules)
      for (const FramesShare& share :
           {module.by_unwind_data, module.by_pointer, module.cut, module.unnamed}) {
        EXPECT_LE(share.time_ns, module.all.time_ns);
        EXPECT_LE(share.frames, module.all.frames);
      }
    EXPECT_FALSE(stacks_health(profile).empty());
  }
}

TEST(Runtimes, AreKnownByWholeNames) {
  EXPECT_NE(runtime_of("/usr/bin/node"), nullptr);
  EXPECT_NE(runtime_of("/usr/lib/libnode.so.108"), nullptr);
  EXPECT_EQ(runtime_of("/usr/bin/node_exporter"), nullptr);
  EXPECT_EQ(runtime_of("/usr/lib/libjvmti-agent.so"), nullptr);
  EXPECT_EQ(runtime_of(""), nullptr);
}

}  // namespace
}  // namespace dwell
