#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/fd.h"
#include "export/export.h"
#include "export/golden.h"
#include "export/reading.h"
#include "export/small_profile.h"
#include "profile/random_profile.h"

namespace dwell {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::StartsWith;

// The samples as text: values, labels, leaf-first names.
std::string describe(const pprof_file::Profile& file) {
  std::string out;
  const auto text = [&](int64_t i) { return file.string_table(static_cast<int>(i)); };
  // Inlined functions first.
  const auto lines = [&](const pprof_file::Location& location) {
    std::string names;
    for (const auto& line : location.line()) {
      const auto& function = file.function(static_cast<int>(line.function_id() - 1));
      names += (names.empty() ? "" : " in ") + text(function.name());
      if (line.line() != 0)
        names += " at " + text(function.filename()) + ":" + std::to_string(line.line());
    }
    return names;
  };
  const auto name = [&](uint64_t location) {
    for (const auto& l : file.location())
      if (l.id() == location) return lines(l);
    return std::string("?");
  };
  for (const auto& sample : file.sample()) {
    for (const int64_t value : sample.value()) out += std::to_string(value) + " ";
    for (const auto& label : sample.label())
      out += text(label.key()) + "=" +
             (label.str() != 0 ? text(label.str()) : std::to_string(label.num())) + " ";
    for (const uint64_t id : sample.location_id()) out += "| " + name(id) + " ";
    out += "\n";
  }
  for (const int64_t comment : file.comment()) out += "comment: " + text(comment) + "\n";
  for (const auto& mapping : file.mapping())
    out += "mapping: " + text(mapping.filename()) + " " + text(mapping.build_id()) +
           (mapping.has_functions() ? " named\n" : " not all named\n");
  return out;
}

TEST(Pprof, LooksLikeTheGoldenFile) {
  expect_golden("small.pprof.txt", describe(read_pprof(pprof(small_profile()).value())));
}

TEST(Pprof, PutsInlinedFunctionsIntoTheLocationThatHoldsThem) {
  const pprof_file::Profile file = read_pprof(pprof(small_profile_with_source()).value());
  expect_golden("small.source.pprof.txt", describe(file));
  EXPECT_TRUE(file.mapping(0).has_line_numbers() && file.mapping(0).has_inline_frames());
  EXPECT_EQ(pprof_sums(file), pprof_sums(read_pprof(pprof(small_profile()).value())));
}

TEST(Pprof, NamesItsSampleTypesAndTheDefaultOne) {
  const pprof_file::Profile file = read_pprof(pprof(small_profile(), View::kBlocked).value());
  std::vector<std::string> types;
  for (const auto& type : file.sample_type())
    types.push_back(file.string_table(static_cast<int>(type.type())) + "/" +
                    file.string_table(static_cast<int>(type.unit())));
  EXPECT_THAT(types, ElementsAre("events/count", "off_cpu/nanoseconds", "blocked/nanoseconds",
                                 "run_queue/nanoseconds"));
  EXPECT_EQ(file.string_table(static_cast<int>(file.default_sample_type())), "blocked");
  EXPECT_EQ(file.duration_nanos(), 10'000'000'000);
  EXPECT_EQ(file.time_nanos(), 1'764'502'907'123'456'789);
}

TEST(Pprof, PutsTheMainProgramFirst) {
  const pprof_file::Profile file = read_pprof(pprof(small_profile()).value());
  ASSERT_GT(file.mapping_size(), 0);
  EXPECT_EQ(file.string_table(static_cast<int>(file.mapping(0).filename())), "/usr/sbin/server");
  EXPECT_EQ(file.string_table(static_cast<int>(file.mapping(0).build_id())), "c0ffee");
}

TEST(Pprof, KeepsEverySampleOfManyChunks) {
  const Profile profile = random_profile({.seed = 8, .frames = 6000, .rows = 20'000});
  const pprof_file::Profile file = read_pprof(pprof(profile).value());
  EXPECT_EQ(static_cast<size_t>(file.sample_size()), profile.rows.size());
  EXPECT_EQ(pprof_sums(file)[1], static_cast<int64_t>(totals(profile).off_cpu_ns));
}

// A second pair of eyes: the protobuf compiler decodes the file with the schema alone.
TEST(Pprof, IsDecodedByProtoc) {
  if (std::system("protoc --version >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "protoc is not installed";
  char dir[] = "/tmp/dwell_pprof_test.XXXXXX";
  ASSERT_NE(mkdtemp(dir), nullptr);
  const std::string raw = std::string(dir) + "/raw";
  const std::string text = std::string(dir) + "/text";
  ASSERT_TRUE(write_file_atomically(
      raw, gunzip(pprof(random_profile({.seed = 9, .hostile_names = true})).value())));
  const std::string command = std::string("protoc --decode=dwell.pprof_file.Profile -I") +
                              DWELL_PROTO_DIR + " pprof.proto <" + raw + " >" + text;
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  const std::string decoded = read_file(text).value();
  EXPECT_THAT(decoded, StartsWith("sample_type {"));
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace dwell
