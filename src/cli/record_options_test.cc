#include "cli/record_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "profile/profile.h"

namespace dwell::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// `dwell record ARGUMENTS`, from the words to the options.
Result<RecordOptions> parse(std::vector<std::string> arguments) {
  CLI::App app;
  RecordWords words;
  add_record_command(app, words);
  arguments.insert(arguments.begin(), "record");
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  app.parse(arguments);
  return check(words);
}

// `-p 1` and what else is given.
RecordOptions good(const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"-p", "1"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto options = parse(arguments);
  EXPECT_TRUE(options) << options.error().message;
  return options.value_or(RecordOptions{});
}

std::string refusal(const std::vector<std::string>& arguments) {
  const auto options = parse(arguments);
  if (options) {
    ADD_FAILURE() << "accepted: " << testing::PrintToString(arguments);
    return "";
  }
  EXPECT_EQ(options.error().kind, Error::Kind::kUsage);
  return options.error().message;
}

std::string refusal_of(const std::string& option, const std::string& value) {
  return refusal({"-p", "1", option, value});
}

TEST(RecordOptions, TakesIdsInListsAndOneByOne) {
  const auto options = parse({"-p", "12,34", "-p", "56", "-t", "7"});
  ASSERT_TRUE(options);
  EXPECT_THAT(options->pids, ElementsAre(12, 34, 56));
  EXPECT_THAT(options->tids, ElementsAre(7));
  EXPECT_EQ(options->target_text(), "-p 12,34,56 -t 7");
  EXPECT_EQ(parse({"-t", "7,8"})->target_text(), "-t 7,8");
  EXPECT_EQ(parse({"-a"})->target_text(), "-a");
}

TEST(RecordOptions, NamesTheIdThatIsNone) {
  for (const char* bad : {"x", "", "-1", "1.5", "4294967296", "0x10", "1,", ",1", "1,,2", "1 2"}) {
    EXPECT_THAT(refusal({"-p", bad}), AllOf(HasSubstr("-p: '"), HasSubstr("process or thread id")))
        << bad;
    EXPECT_THAT(refusal({"-t", bad}), HasSubstr("-t: '")) << bad;
  }
  EXPECT_THAT(refusal({"-p", "12,x\x1b[31m"}), HasSubstr("-p: 'x\\x1b[31m'"));
}

TEST(RecordOptions, TakesTheCommandWithItsOwnOptions) {
  const auto options = parse({"-q", "--", "sleep", "-p", "1"});
  ASSERT_TRUE(options);
  EXPECT_THAT(options->command, ElementsAre("sleep", "-p", "1"));
  EXPECT_THAT(options->pids, IsEmpty());
  EXPECT_EQ(options->target_text(), "-- sleep -p 1");
  EXPECT_EQ(parse({"-a", "--", "sleep", "1"})->target_text(), "-a -- sleep 1");
}

TEST(RecordOptions, WantsExactlyOneKindOfTarget) {
  EXPECT_THAT(refusal({}), AllOf(HasSubstr("-p PID"), HasSubstr("-a"), HasSubstr("-- COMMAND")));
  EXPECT_THAT(refusal({"-p", "1", "-a"}), HasSubstr("exclude"));
  EXPECT_THAT(refusal({"-t", "1", "--", "true"}), HasSubstr("exclude"));
}

TEST(RecordOptions, RefusesContradictions) {
  EXPECT_THAT(refusal({"-a", "--user-threads", "--kernel-threads"}),
              AllOf(HasSubstr("--user-threads"), HasSubstr("--kernel-threads")));
  EXPECT_THAT(refusal({"-p", "1", "--follow", "--no-follow"}), HasSubstr("--no-follow"));
  EXPECT_THAT(
      refusal({"-p", "1", "--min", "2ms", "--max", "1ms"}),
      AllOf(HasSubstr("--min"), HasSubstr("--max"), HasSubstr("2.000 ms"), HasSubstr("1.000 ms")));
  EXPECT_EQ(good({"--min", "1ms", "--max", "1ms"}).probe.min_ns, 1'000'000u);
}

TEST(RecordOptions, TakesDurationsInEveryUnit) {
  const std::pair<const char*, uint64_t> kDurations[] = {
      {"7ns", 7},
      {"3us", 3'000},
      {"10ms", 10'000'000},
      {"1.5s", 1'500'000'000},
      {"2m", 120'000'000'000},
      {"1h", 3'600'000'000'000},
  };
  for (const auto& [text, ns] : kDurations) {
    EXPECT_EQ(good({"-d", text}).duration_ns, ns) << text;
    EXPECT_EQ(good({"--min", text}).probe.min_ns, ns) << text;
    EXPECT_EQ(good({"--max", text}).probe.max_ns, ns) << text;
  }
  EXPECT_EQ(good({"--min", "0"}).probe.min_ns, 0u);
  EXPECT_EQ(good({}).duration_ns, std::nullopt);
  EXPECT_EQ(good({}).probe.max_ns, ~uint64_t{0});
}

TEST(RecordOptions, NamesTheOptionWhoseDurationIsNone) {
  for (const char* option : {"-d", "--min", "--max"}) {
    for (const char* bad : {"5", "ms", "1.5.5s", "-1s", "inf", "nan", "5 ms", "5MS", "1e30s"}) {
      EXPECT_THAT(refusal_of(option, bad), AllOf(testing::StartsWith(std::string(option) + ": "),
                                                 HasSubstr("'" + std::string(bad) + "'")))
          << option << " " << bad;
    }
    EXPECT_THAT(refusal_of(option, "5"), HasSubstr("10ms")) << "and shows how it is written";
  }
  EXPECT_THAT(refusal_of("-d", "0"), AllOf(HasSubstr("-d: "), HasSubstr("longer than 0")));
  EXPECT_THAT(refusal_of("-d", "0.1ns"), HasSubstr("longer than 0"));
}

// dwell record -p 1 -d "$UNSET" must not record for ever.
TEST(RecordOptions, RefusesEmptyWords) {
  for (const char* option :
       {"-d", "--min", "--max", "--rows", "--stacks", "--stack-ring", "--thread-ring"})
    EXPECT_THROW(parse({"-p", "1", option, ""}), CLI::ValidationError) << option;
}

TEST(RecordOptions, TurnsClassNamesIntoAMask) {
  EXPECT_EQ(good({}).probe.class_mask, ~0u);
  EXPECT_EQ(good({"--class", "io"}).probe.class_mask, 1u << DWELL_CLASS_IO);
  EXPECT_EQ(good({"--class", "io,preempted", "--class", "new"}).probe.class_mask,
            1u << DWELL_CLASS_IO | 1u << DWELL_CLASS_PREEMPTED | 1u << DWELL_CLASS_NEW);
  const uint32_t blocked = good({"--class", "blocked"}).probe.class_mask;
  const uint32_t run_queue = good({"--class", "run-queue"}).probe.class_mask;
  EXPECT_EQ(blocked & run_queue, 0u);
  EXPECT_EQ(blocked | run_queue, (1u << DWELL_CLASS_COUNT) - 2) << "all classes but none";
  EXPECT_TRUE(blocked & 1u << DWELL_CLASS_KILLABLE);
  EXPECT_TRUE(run_queue & 1u << DWELL_CLASS_RUNNABLE);
}

TEST(RecordOptions, KnowsEveryClassByTheNameThatTheOutputsUse) {
  const std::string message = refusal_of("--class", "sleeping");
  EXPECT_THAT(message, AllOf(HasSubstr("--class"), HasSubstr("'sleeping'")));
  for (int i = 1; i < kWaitClassCount; ++i) {
    const std::string name = wait_class_name(static_cast<WaitClass>(i));
    EXPECT_EQ(good({"--class", name}).probe.class_mask, 1u << i) << name;
    EXPECT_THAT(message, HasSubstr(name)) << "the message lists what there is";
  }
  for (const char* bad : {"none", "", "io,", "IO", "interruptible io"})
    EXPECT_THAT(refusal_of("--class", bad), HasSubstr("--class: unknown class '")) << bad;
}

TEST(RecordOptions, TurnsStateLettersAndBitsIntoAMask) {
  const auto mask = [](const std::string& text) {
    return good({"--state", text}).probe.state_mask;
  };
  EXPECT_EQ(good({}).probe.state_mask, 0u) << "any";
  EXPECT_EQ(mask("S"), 0x1u);
  EXPECT_EQ(mask("D"), 0x2u);
  EXPECT_EQ(mask("T"), 0x4u);
  EXPECT_EQ(mask("t"), 0x8u);
  EXPECT_EQ(mask("P"), 0x40u);
  EXPECT_EQ(mask("I"), 0x400u);
  EXPECT_EQ(mask("R"), 1u << 31);
  EXPECT_EQ(mask("0"), 1u << 31) << "what the kernel calls running";
  EXPECT_EQ(mask("8193"), 0x2001u);
  EXPECT_EQ(mask("S,D"), 0x3u);
  for (const char* bad : {"X", "s", "SD", "-1", "4294967296", "S,"})
    EXPECT_THAT(refusal_of("--state", bad), AllOf(HasSubstr("--state: '"), HasSubstr("R S D T")))
        << bad;
}

TEST(RecordOptions, KeepsSizesWithinTheirBounds) {
  const RecordOptions options = good({"--rows", "1", "--stacks", "16777216", "--stack-ring", "4096",
                                      "--thread-ring", "1073741824"});
  EXPECT_EQ(options.probe.rows, 1u);
  EXPECT_EQ(options.probe.stacks, 1u << 24);
  EXPECT_EQ(options.probe.stack_ring_bytes, 4096u);
  EXPECT_EQ(options.probe.thread_ring_bytes, 1u << 30);
  EXPECT_EQ(good({}).probe.rows, probe::ProbeOptions{}.rows);
  for (const char* option : {"--rows", "--stacks", "--stack-ring", "--thread-ring"})
    for (const char* bad : {"0", "-1", "1k", "16.0", "4294967296", "4000000000"})
      EXPECT_THAT(refusal_of(option, bad),
                  AllOf(HasSubstr(std::string(option) + ": '" + bad + "'"), HasSubstr(" from ")));
  EXPECT_THAT(refusal_of("--stack-ring", "4095"), HasSubstr("from 4096 to 1073741824"));
}

TEST(RecordOptions, RecordsEveryThreadUnlessToldOtherwise) {
  EXPECT_TRUE(good({}).probe.user_threads && good({}).probe.kernel_threads);
  EXPECT_FALSE(parse({"-a", "--user-threads"})->probe.kernel_threads);
  EXPECT_TRUE(parse({"-a", "--user-threads"})->probe.user_threads);
  EXPECT_FALSE(parse({"-a", "--kernel-threads"})->probe.user_threads);
  EXPECT_TRUE(good({}).probe.follow);
  EXPECT_TRUE(good({"--follow"}).probe.follow);
  EXPECT_FALSE(good({"--no-follow"}).probe.follow);
}

TEST(RecordOptions, SwitchesStacksAndNamesOff) {
  EXPECT_TRUE(good({}).probe.user_stacks && good({}).probe.kernel_stacks && good({}).demangle);
  EXPECT_FALSE(good({"--no-user-stacks"}).probe.user_stacks);
  EXPECT_FALSE(good({"--no-kernel-stacks"}).probe.kernel_stacks);
  EXPECT_FALSE(good({}).probe.runnable_kernel_stacks);
  EXPECT_TRUE(good({"--preempt-stacks"}).probe.runnable_kernel_stacks);
  EXPECT_FALSE(good({"--no-demangle"}).demangle);
  EXPECT_TRUE(good({}).python);
  EXPECT_FALSE(good({"--no-python"}).python);
}

TEST(RecordOptions, TellsWhatIsInForceWithUnits) {
  EXPECT_THAT(good({"--min", "10ms", "--max", "2s", "--class", "io", "--state", "S"}).effective(),
              AllOf(Contains("min=10.00 ms"), Contains("max=2.000 s"), Contains("classes=0x4"),
                    Contains("states=0x1")));
  const auto plain = good({}).effective();
  EXPECT_THAT(plain, AllOf(Contains("follow=yes"), Contains("threads=user,kernel"),
                           Contains("rows=262144"), Contains("stacks=524288")));
  EXPECT_THAT(plain, Not(Contains(HasSubstr("min="))));
  EXPECT_THAT(parse({"-a", "--kernel-threads"})->effective(), Contains("threads=kernel"));
}

TEST(RecordOptions, TheTimelineIsOffUnlessAskedAndAloneMeansAll) {
  EXPECT_EQ(good({}).probe.timeline_min_ns, std::nullopt);
  EXPECT_EQ(good({"--timeline"}).probe.timeline_min_ns, 0u);
  EXPECT_EQ(good({"--timeline=250us"}).probe.timeline_min_ns, 250'000u);
  const RecordOptions options =
      good({"--timeline=1ms", "--timeline-ring", "8192", "--timeline-intervals", "77"});
  EXPECT_EQ(options.timeline.ring_bytes, 8192u);
  EXPECT_EQ(options.timeline.intervals, 77u);
  EXPECT_THAT(options.effective(), Contains("timeline-intervals=77"));
}

TEST(RecordOptions, ATimelineNeedsAUnitAndItsLimitsNeedATimeline) {
  EXPECT_THAT(refusal({"-p", "1", "--timeline=7"}), HasSubstr("--timeline"));
  EXPECT_THAT(refusal({"-p", "1", "--timeline-ring", "8192"}), HasSubstr("need --timeline"));
  EXPECT_THAT(refusal({"-p", "1", "--timeline", "--timeline-intervals", "0"}),
              HasSubstr("--timeline-intervals"));
}

}  // namespace
}  // namespace dwell::cli
