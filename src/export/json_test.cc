#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "export/export.h"
#include "export/golden.h"
#include "export/small_profile.h"
#include "profile/random_profile.h"

namespace dwell {
namespace {

using nlohmann::json;

TEST(Json, LooksLikeTheGoldenFile) {
  expect_golden("small.json", dwell::json(small_profile()));
  expect_golden("small.source.json", dwell::json(small_profile_with_source()));
}

TEST(Json, HasOnlyIndexesThatExist) {
  const json d = json::parse(dwell::json(random_profile({.seed = 4})));
  for (const json& frame : d["frames"]) {
    EXPECT_LT(frame["module"], d["modules"].size());
    EXPECT_FALSE(frame["name"].get<std::string>().empty());
  }
  for (const json& stack : d["stacks"])
    for (const json& frame : stack["frames"]) EXPECT_LT(frame, d["frames"].size());
  for (const json& thread : d["threads"]) EXPECT_LT(thread["process"], d["processes"].size());
  for (const json& row : d["rows"]) {
    EXPECT_LT(row["thread"], d["threads"].size());
    EXPECT_LT(row["stack"], d["stacks"].size());
    EXPECT_EQ(row["total_ns"].get<uint64_t>(),
              row["blocked_ns"].get<uint64_t>() + row["run_queue_ns"].get<uint64_t>());
  }
  EXPECT_EQ(d["intervals"].size(), 50u);
  for (const json& interval : d["intervals"]) {
    EXPECT_LT(interval["thread"], d["threads"].size());
    EXPECT_LT(interval["stack"], d["stacks"].size());
    EXPECT_GE(interval["start_ns"], d["window"]["start_ns"]);
  }
}

TEST(Json, TellsARecordingWithoutATimelineFromOneWhereNothingWasLong) {
  Profile profile = small_profile();
  profile.timeline.clear();
  const json empty = json::parse(dwell::json(profile));
  EXPECT_EQ(empty["timeline"]["min_ns"], 1'000'000);
  EXPECT_TRUE(empty["intervals"].empty());
  profile.timeline_min_ns.reset();
  EXPECT_TRUE(json::parse(dwell::json(profile))["timeline"].is_null());
}

TEST(Json, KeepsControlBytesAndReplacesInvalidUtf8) {
  Profile profile = small_profile();
  profile.target = "a\n\x01\"\\\xff";
  profile.host = "\xc2\x9b</script>";
  const json d = json::parse(dwell::json(profile));
  EXPECT_EQ(d["target"], "a\n\x01\"\\\xef\xbf\xbd");
  EXPECT_EQ(d["host"], "\xc2\x9b</script>");
}

TEST(Json, WritesTheLargestNumbersExactly) {
  Profile profile = small_profile();
  profile.rows[0].max_ns = UINT64_MAX;
  profile.threads[0].times.lost_ns += 5;
  const json d = json::parse(dwell::json(profile));
  EXPECT_EQ(d["rows"][0]["max_ns"].get<uint64_t>(), UINT64_MAX);
  EXPECT_EQ(d["threads"][0]["residual_ns"], -5);
  EXPECT_EQ(d["totals"]["residual_ns"], -5);
}

}  // namespace
}  // namespace dwell
