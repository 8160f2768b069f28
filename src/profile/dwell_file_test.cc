#include "profile/dwell_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>

#include "base/fd.h"
#include "profile/document.h"
#include "profile/dwell_profile.pb.h"
#include "profile/random_profile.h"

namespace dwell {
namespace {

using testing::HasSubstr;

std::string message_of(const Result<Profile>& profile) {
  return profile ? "no error" : profile.error().message;
}

// Equal content: the document is a complete, deterministic picture of a profile.
std::string picture(const Profile& profile) { return encode_document(profile).value(); }

TEST(DwellFile, GivesBackWhatWasWritten) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    std::mt19937_64 random(seed);
    const Profile profile = random_profile({.seed = seed,
                                            .processes = random() % 20,
                                            .threads = random() % 60,
                                            .frames = 1 + random() % 300,
                                            .stacks = random() % 100,
                                            .rows = random() % 300,
                                            .depth_max = 1 + random() % 127,
                                            .hostile_names = seed % 4 == 0});
    const Result<Profile> again = decode(encode(profile).value());
    ASSERT_TRUE(again) << message_of(again);
    ASSERT_EQ(picture(*again), picture(profile)) << "seed " << seed;
    ASSERT_EQ(again->rows.size(), profile.rows.size());
    for (size_t i = 0; i < profile.rows.size(); ++i)
      ASSERT_EQ(again->rows[i].histogram, profile.rows[i].histogram);
    for (size_t i = 0; i < profile.frames.size(); ++i) {
      ASSERT_EQ(again->frames[i].line, profile.frames[i].line);
      ASSERT_EQ(again->frames[i].file, profile.frames[i].file);
    }
    for (size_t i = 0; i < profile.stacks.size(); ++i)
      ASSERT_EQ(again->stacks[i].walk, profile.stacks[i].walk);
    ASSERT_EQ(again->timeline.size(), profile.timeline.size());
    ASSERT_EQ(again->timeline_min_ns, profile.timeline_min_ns);
    for (size_t i = 0; i < profile.timeline.size(); ++i)
      ASSERT_EQ(again->timeline[i].end_ns(), profile.timeline[i].end_ns());
    ASSERT_EQ(totals(*again).threads.alive_ns, totals(profile).threads.alive_ns);
  }
}

TEST(DwellFile, KeepsAnEmptyRecording) {
  const Result<Profile> again = decode(encode(Profile{}).value());
  ASSERT_TRUE(again) << message_of(again);
  EXPECT_TRUE(again->rows.empty());
  EXPECT_EQ(again->text(0), "");
}

TEST(DwellFile, TellsTruncationFromDamageAtEveryByte) {
  const std::string bytes = encode(random_profile({.rows = 10})).value();
  for (size_t size = 1; size < bytes.size(); ++size)
    ASSERT_THAT(message_of(decode(std::string_view(bytes).substr(0, size))), HasSubstr("truncated"))
        << size << " of " << bytes.size();
  for (size_t i = 40; i < bytes.size(); ++i) {
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    ASSERT_THAT(message_of(decode(flipped)), HasSubstr("damaged")) << "byte " << i;
  }
  EXPECT_THAT(message_of(decode(bytes + "x")), HasSubstr("damaged"));
  EXPECT_THAT(message_of(decode("")), HasSubstr("empty"));
}

TEST(DwellFile, RefusesAnyChangeOfTheHeader) {
  const std::string bytes = encode(random_profile({.rows = 10})).value();
  for (size_t i = 0; i < 40; ++i) {
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x10);
    ASSERT_FALSE(decode(flipped)) << "byte " << i;
  }
}

TEST(DwellFile, SaysWhatANewerFormatNeeds) {
  std::string bytes = encode(Profile{}).value();
  bytes[8] = 9;
  EXPECT_EQ(message_of(decode(bytes)),
            "written by a newer dwell (format 9), this one reads up to 1: upgrade dwell");
}

TEST(DwellFile, RefusesOtherFilesAsUsage) {
  for (const char* other :
       {"{\"format\": 1}", "\x1f\x8b\x08", "\x89PNG\r\n\x1a\n", "#!/bin/sh\n"}) {
    const Result<Profile> profile = decode(other);
    ASSERT_FALSE(profile);
    EXPECT_EQ(profile.error().kind, Error::Kind::kRuntime) << other;
    EXPECT_THAT(profile.error().message, HasSubstr("not a dwell file"));
  }
}

TEST(DwellFile, NamesTheFileInEveryError) {
  char dir[] = "/tmp/dwell_file_test.XXXXXX";
  ASSERT_NE(mkdtemp(dir), nullptr);
  const std::string path = std::string(dir) + "/a.dwell";
  EXPECT_EQ(message_of(read_dwell_file(path)),
            "cannot open " + path + ": No such file or directory (ENOENT)");
  ASSERT_TRUE(write_file_atomically(path, "hello, world"));
  EXPECT_THAT(message_of(read_dwell_file(path)), HasSubstr(path + ": not a dwell file"));
  ASSERT_TRUE(write_dwell_file(path, random_profile({.seed = 3})));
  EXPECT_TRUE(read_dwell_file(path));
  std::filesystem::remove_all(dir);
}

TEST(DwellFile, RefusesToWriteTimesThatNobodyCouldAdd) {
  Profile profile = random_profile({.rows = 2});
  profile.rows[0].blocked_ns = UINT64_MAX - 1;
  EXPECT_FALSE(encode(profile));
}

TEST(DwellFile, RefusesToWriteMoreThanItWouldRead) {
  Profile profile = random_profile({.rows = 2});
  profile.options.assign(5000, "x=1");
  EXPECT_THAT(encode(profile).error().message, HasSubstr("5000 options, the limit is 4096"));
}

// Each case breaks one promise of profile.h in an otherwise good document.
struct Break {
  const char* what;
  std::function<void(file::Document&)> apply;
};

TEST(Document, RefusesEveryBrokenPromise) {
  const std::string good = encode_document(random_profile({.seed = 11})).value();
  ASSERT_TRUE(decode_document(good));
  const uint32_t far = 1'000'000;
  const std::vector<Break> breaks = {
      {"no strings", [](auto& d) { d.clear_strings(); }},
      {"first string not empty", [](auto& d) { d.set_strings(0, "x"); }},
      {"window backwards", [](auto& d) { d.mutable_recording()->set_end_ns(1); }},
      {"module path", [&](auto& d) { d.mutable_modules(0)->set_path(far); }},
      {"module build id", [&](auto& d) { d.mutable_modules(0)->set_build_id(far); }},
      {"module kind", [](auto& d) { d.mutable_modules(0)->set_kind(10); }},
      {"frame function", [&](auto& d) { d.mutable_frames()->set_function(0, far); }},
      {"frame symbol", [&](auto& d) { d.mutable_frames()->set_symbol(0, far); }},
      {"frame module", [&](auto& d) { d.mutable_frames()->set_module(0, far); }},
      {"frame how",
       [](auto& d) { d.mutable_frames()->set_how(0, static_cast<int>(kResolutionLast) + 1); }},
      {"frame kind", [](auto& d) { d.mutable_frames()->set_kind(0, 3); }},
      {"frame file", [&](auto& d) { d.mutable_frames()->set_file(0, far); }},
      {"frame lines without files", [](auto& d) { d.mutable_frames()->clear_file(); }},
      {"frame lines fewer",
       [](auto& d) {
         d.mutable_frames()->mutable_line()->RemoveLast();
         d.mutable_frames()->mutable_file()->RemoveLast();
       }},
      {"frame columns", [](auto& d) { d.mutable_frames()->add_offset(1); }},
      {"stack frame", [&](auto& d) { d.mutable_stacks()->set_frames(0, far); }},
      {"stack depth", [](auto& d) { d.mutable_stacks()->set_depth(0, UINT32_MAX); }},
      {"stack flags", [](auto& d) { d.mutable_stacks()->set_flags(0, 4); }},
      {"stack columns", [](auto& d) { d.mutable_stacks()->add_depth(0); }},
      {"stack walk end", [](auto& d) { d.mutable_stacks()->set_walk_end(0, 15); }},
      {"stack walk columns", [](auto& d) { d.mutable_stacks()->add_pointer_steps_low(0); }},
      {"stack walks fewer",
       [](auto& d) {
         d.mutable_stacks()->mutable_walk_end()->RemoveLast();
         d.mutable_stacks()->mutable_pointer_steps_low()->RemoveLast();
         d.mutable_stacks()->mutable_pointer_steps_high()->RemoveLast();
       }},
      {"stack frames left over", [](auto& d) { d.mutable_stacks()->add_frames(0); }},
      {"process name", [&](auto& d) { d.mutable_processes(0)->set_comm(far); }},
      {"process executable", [&](auto& d) { d.mutable_processes(0)->set_executable(far); }},
      {"process command", [&](auto& d) { d.mutable_processes(0)->set_command_line(far); }},
      {"thread process", [&](auto& d) { d.mutable_threads(0)->set_process(far); }},
      {"thread name", [&](auto& d) { d.mutable_threads(0)->set_comm(far); }},
      {"thread end", [](auto& d) { d.mutable_threads(0)->set_end(4); }},
      {"thread flags", [](auto& d) { d.mutable_threads(0)->set_flags(4); }},
      {"half a schedstat",
       [](auto& d) {
         d.mutable_threads(0)->set_schedstat_on_cpu_ns(1);
         d.mutable_threads(0)->clear_schedstat_run_queue_ns();
       }},
      {"thread time", [](auto& d) { d.mutable_threads(0)->set_alive_ns(UINT64_MAX); }},
      {"row thread", [&](auto& d) { d.mutable_rows()->set_thread(0, far); }},
      {"row stack", [&](auto& d) { d.mutable_rows()->set_stack(0, far); }},
      {"row cause", [&](auto& d) { d.mutable_rows()->set_cause(0, far); }},
      {"row class", [](auto& d) { d.mutable_rows()->set_wait_class(0, 18); }},
      {"row flags", [](auto& d) { d.mutable_rows()->set_flags(0, 8); }},
      {"row columns", [](auto& d) { d.mutable_rows()->add_count(1); }},
      {"row time", [](auto& d) { d.mutable_rows()->set_blocked_ns(0, UINT64_MAX); }},
      {"rows out of order",
       [](auto& d) { d.mutable_rows()->set_blocked_ns(d.rows().count_size() - 1, 1ll << 60); }},
      {"histogram count missing",
       [](auto& d) { d.mutable_rows()->mutable_histogram_counts()->RemoveLast(); }},
      {"histogram count left over", [](auto& d) { d.mutable_rows()->add_histogram_counts(1); }},
      {"histogram count zero", [](auto& d) { d.mutable_rows()->set_histogram_counts(0, 0); }},
      {"interval thread", [&](auto& d) { d.mutable_timeline()->set_thread(49, far); }},
      {"interval stack", [&](auto& d) { d.mutable_timeline()->set_stack(0, far); }},
      {"interval cause", [&](auto& d) { d.mutable_timeline()->set_cause(0, far); }},
      {"interval class", [](auto& d) { d.mutable_timeline()->set_wait_class(0, 18); }},
      {"interval flags", [](auto& d) { d.mutable_timeline()->set_flags(0, 4); }},
      {"interval columns", [](auto& d) { d.mutable_timeline()->add_cpu(1); }},
      {"interval before the window",
       [](auto& d) { d.mutable_timeline()->set_start_step_ns(0, -1); }},
      {"interval that ends after the window",
       [](auto& d) { d.mutable_timeline()->set_blocked_ns(0, 1ll << 60); }},
      {"interval whose length wraps",
       [](auto& d) { d.mutable_timeline()->set_run_queue_ns(0, UINT64_MAX); }},
      {"intervals out of order",
       [](auto& d) { d.mutable_timeline()->set_thread(0, d.timeline().thread(49) + 1); }},
      {"unresolved module", [&](auto& d) { d.mutable_unresolved(0)->set_module(far); }},
      {"too many options",
       [](auto& d) {
         for (int i = 0; i < 5000; ++i) d.add_options("");
       }},
  };
  for (const Break& broken : breaks) {
    file::Document document;
    ASSERT_TRUE(document.ParseFromString(good));
    broken.apply(document);
    const Result<Profile> profile = decode_document(document.SerializeAsString());
    EXPECT_THAT(message_of(profile), HasSubstr("damaged")) << broken.what;
  }
}

TEST(Document, TakesRecordingsThatDoNotTellHowStacksWereWalked) {
  file::Document document;
  ASSERT_TRUE(document.ParseFromString(encode_document(random_profile({.seed = 11})).value()));
  document.mutable_stacks()->clear_walk_end();
  document.mutable_stacks()->clear_pointer_steps_low();
  document.mutable_stacks()->clear_pointer_steps_high();
  const Result<Profile> profile = decode_document(document.SerializeAsString());
  ASSERT_TRUE(profile) << message_of(profile);
  for (const Stack& stack : profile->stacks) EXPECT_EQ(stack.walk, Walk{});
}

TEST(Document, SurvivesEveryFlippedByte) {
  const std::string good =
      encode_document(random_profile({.seed = 2, .frames = 10, .stacks = 5, .rows = 10})).value();
  size_t refused = 0;
  for (size_t i = 0; i < good.size(); ++i) {
    std::string flipped = good;
    flipped[i] = static_cast<char>(flipped[i] ^ (1 << i % 8));
    const Result<Profile> profile = decode_document(flipped);
    if (!profile) ++refused;
    if (profile) {
      EXPECT_TRUE(encode_document(*profile));
    }
  }
  EXPECT_GT(refused, 100u);
}

}  // namespace
}  // namespace dwell
