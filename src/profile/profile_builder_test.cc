#include "profile/profile_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace dwell {
namespace {

using testing::ElementsAre;

// A builder with one process, one thread and one stack.
struct Fixture {
  ProfileBuilder builder;
  uint32_t process = builder.process({.pid = 7, .comm = builder.string("nginx")});
  uint32_t thread = builder.thread({.process = process, .tid = 7, .times = {}, .schedstat = {}});
  uint32_t stack = builder.stack({}, false, false);

  Row row(const char* cause, uint64_t blocked_ns) {
    return {.thread = thread,
            .stack = stack,
            .cause = builder.string(cause),
            .wait_class = WaitClass::kInterruptible,
            .count = 1,
            .blocked_ns = blocked_ns,
            .max_ns = blocked_ns};
  }
};

TEST(ProfileBuilder, InternsByContent) {
  ProfileBuilder builder;
  EXPECT_EQ(builder.string(""), 0u);
  const StringId read = builder.string("read");
  EXPECT_EQ(builder.string("read"), read);
  EXPECT_NE(builder.string(std::string_view("read\0", 5)), read);

  const uint32_t libc = builder.module("/lib/libc.so.6", "ab", ModuleKind::kFile);
  EXPECT_EQ(builder.module("/lib/libc.so.6", "ab", ModuleKind::kFile), libc);
  EXPECT_NE(builder.module("/lib/libc.so.6", "cd", ModuleKind::kFile), libc);

  const Frame frame{.function = read, .module = libc, .address = 0x1000};
  const uint32_t leaf = builder.frame(frame);
  EXPECT_EQ(builder.frame(frame), leaf);
  const uint32_t lost = builder.placeholder("[user stack lost: store full]");
  EXPECT_EQ(builder.placeholder("[user stack lost: store full]"), lost);

  const uint32_t frames[] = {leaf, lost};
  const uint32_t reversed[] = {lost, leaf};
  const uint32_t stack = builder.stack(frames, true, false);
  EXPECT_EQ(builder.stack(frames, true, false), stack);
  EXPECT_NE(builder.stack(frames, true, true), stack);
  EXPECT_NE(builder.stack(reversed, true, false), stack);
}

TEST(ProfileBuilder, KeepsOfEqualStacksTheWalkThatTellsMore) {
  const Walk unknown, by_pointer{WalkEnd::kRootPointer, {0b11, 0}}, by_tables{WalkEnd::kRoot, {}};
  for (const auto& [first, second] : {std::pair(by_pointer, by_tables),
                                      {by_tables, by_pointer},
                                      {unknown, by_tables},
                                      {by_tables, unknown}}) {
    ProfileBuilder builder;
    const uint32_t frame = builder.placeholder("[somewhere]");
    const uint32_t stack = builder.stack({&frame, 1}, true, false, first);
    EXPECT_EQ(builder.stack({&frame, 1}, true, false, second), stack);
    EXPECT_EQ(std::move(builder).finish().stacks[stack].walk, by_tables);
  }
}

TEST(ProfileBuilder, KeepsPlaceholdersApartFromAddresses) {
  ProfileBuilder builder;
  builder.placeholder("[no user stack: not asked for]");
  const Profile profile = std::move(builder).finish();
  ASSERT_EQ(profile.frames.size(), 1u);
  EXPECT_EQ(profile.frames[0].kind, FrameKind::kPlaceholder);
  EXPECT_EQ(profile.frames[0].how, Resolution::kPlaceholder);
  EXPECT_EQ(profile.text(profile.frames[0].function), "[no user stack: not asked for]");
  ASSERT_LT(profile.frames[0].module, profile.modules.size());
}

TEST(ProfileBuilder, CompletesAProcessSeenTwice) {
  ProfileBuilder builder;
  const uint32_t first = builder.process({.pid = 7, .exec_id = 1, .start_boottime_ns = 5});
  const uint32_t again = builder.process({.pid = 7,
                                          .parent_pid = 1,
                                          .exec_id = 1,
                                          .start_boottime_ns = 5,
                                          .comm = builder.string("nginx")});
  const uint32_t after_exec = builder.process({.pid = 7, .exec_id = 2, .start_boottime_ns = 5});
  EXPECT_EQ(again, first);
  EXPECT_NE(after_exec, first);
  const Profile profile = std::move(builder).finish();
  EXPECT_EQ(profile.text(profile.processes[first].comm), "nginx");
  EXPECT_EQ(profile.processes[first].parent_pid, 1u);
}

TEST(ProfileBuilder, TellsWhatIsNoRealProcessApartByName) {
  ProfileBuilder builder;
  const uint32_t overflow = builder.process({.comm = builder.string("(overflow)")});
  const uint32_t lost = builder.process({.comm = builder.string("(threads lost)")});
  EXPECT_NE(lost, overflow);
  EXPECT_EQ(builder.process({.comm = builder.string("(overflow)")}), overflow);
}

TEST(ProfileBuilder, MergesRowsWithEqualKeysOnly) {
  Fixture f;
  Row a = f.row("read", 100);
  a.histogram[3] = 1;
  Row b = f.row("read", 50);
  b.histogram[3] = 2;
  Row other_state = f.row("read", 7);
  other_state.state = 2;
  Row censored = f.row("read", 8);
  censored.censored_right = true;
  for (const Row& row : {a, b, other_state, censored}) f.builder.add(row);
  const Profile profile = std::move(f.builder).finish();
  ASSERT_EQ(profile.rows.size(), 3u);
  EXPECT_EQ(profile.rows[0].blocked_ns, 150u);
  EXPECT_EQ(profile.rows[0].count, 2u);
  EXPECT_EQ(profile.rows[0].max_ns, 100u);
  EXPECT_EQ(profile.rows[0].histogram[3], 3u);
}

TEST(ProfileBuilder, SaturatesAHistogramBucketInsteadOfWrapping) {
  Fixture f;
  Row row = f.row("read", 1);
  row.histogram[0] = std::numeric_limits<uint32_t>::max() - 1;
  f.builder.add(row);
  f.builder.add(row);
  EXPECT_EQ(std::move(f.builder).finish().rows[0].histogram[0],
            std::numeric_limits<uint32_t>::max());
}

TEST(ProfileBuilder, SortsRowsLongestFirst) {
  Fixture f;
  f.builder.add(f.row("short", 5));
  f.builder.add(f.row("long", 500));
  f.builder.add(f.row("middle", 50));
  const Profile profile = std::move(f.builder).finish();
  std::vector<std::string> causes;
  for (const Row& row : profile.rows) causes.push_back(profile.text(row.cause));
  EXPECT_THAT(causes, ElementsAre("long", "middle", "short"));
}

TEST(ProfileBuilder, CanBeUsedAgainAfterFinish) {
  Fixture f;
  f.builder.add(f.row("read", 5));
  std::move(f.builder).finish();
  EXPECT_EQ(f.builder.string("write"), 1u);
  const Profile second = std::move(f.builder).finish();
  EXPECT_TRUE(second.rows.empty());
  EXPECT_THAT(second.strings, ElementsAre("", "write"));
}

}  // namespace
}  // namespace dwell
