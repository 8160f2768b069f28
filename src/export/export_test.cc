// What holds for every output at once: the same nanoseconds everywhere, and no name that breaks a
// format.
#include "export/export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "export/pprof.pb.h"
#include "export/reading.h"
#include "export/wait_groups.h"
#include "export/words.h"
#include "profile/random_profile.h"

namespace dwell {
namespace {

constexpr std::string_view kPage =
    "<!doctype html><script id=\"dwell-data\" type=\"application/octet-stream\" "
    "data-encoding=\"gzip-base64\">@DWELL_DATA@</script><p>end";

uint64_t folded_sum(const std::string& text) {
  uint64_t sum = 0;
  for (const FoldedLine& line : parse_folded(text)) sum += line.ns;
  return sum;
}

uint64_t json_sum(const nlohmann::json& document, const char* field) {
  uint64_t sum = 0;
  for (const auto& row : document.at("rows")) sum += row.at(field).get<uint64_t>();
  return sum;
}

uint64_t table_sum(const Profile& profile, View view) {
  uint64_t sum = 0;
  for (const WaitGroup& group : group_by_wait(profile, view)) sum += group.time_ns;
  return sum;
}

TEST(EveryOutput, ShowsTheSameNanoseconds) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Profile profile =
        random_profile({.seed = seed, .rows = seed * 10, .hostile_names = seed % 8 == 0});
    const Totals sum = totals(profile);
    const auto document = nlohmann::json::parse(json(profile));
    EXPECT_EQ(document["totals"]["off_cpu_ns"], sum.off_cpu_ns);
    EXPECT_EQ(json_sum(document, "total_ns"), sum.off_cpu_ns);
    EXPECT_EQ(json_sum(document, "blocked_ns"), sum.blocked_ns);
    EXPECT_EQ(folded_sum(folded(profile)), sum.off_cpu_ns);
    EXPECT_EQ(folded_sum(folded(profile, {.view = View::kBlocked})), sum.blocked_ns);
    EXPECT_EQ(folded_sum(folded(profile, {.view = View::kRunQueue})), sum.run_queue_ns);
    EXPECT_EQ(folded_sum(folded(profile, {.wall = true})), sum.threads.alive_ns);
    EXPECT_EQ(pprof_sums(read_pprof(pprof(profile).value())),
              (std::array<int64_t, 4>{
                  static_cast<int64_t>(sum.intervals), static_cast<int64_t>(sum.off_cpu_ns),
                  static_cast<int64_t>(sum.blocked_ns), static_cast<int64_t>(sum.run_queue_ns)}));
    EXPECT_EQ(table_sum(profile, View::kOffCpu), sum.off_cpu_ns);
    EXPECT_EQ(table_sum(profile, View::kRunQueue), sum.run_queue_ns);
  }
}

TEST(EveryOutput, StandsAnEmptyRecording) {
  const Profile empty;
  EXPECT_EQ(folded(empty), "");
  EXPECT_EQ(nlohmann::json::parse(json(empty))["rows"].size(), 0u);
  EXPECT_THAT(table(empty), testing::HasSubstr("No off-CPU time was recorded"));
  EXPECT_EQ(read_pprof(pprof(empty).value()).sample_type_size(), 4);
  EXPECT_TRUE(html(empty, kPage));
}

TEST(EveryOutput, GivesTheSameBytesTwice) {
  const Profile profile = random_profile({.seed = 3});
  const Profile again = random_profile({.seed = 3});
  EXPECT_EQ(json(profile), json(again));
  EXPECT_EQ(folded(profile), folded(again));
  EXPECT_EQ(pprof(profile).value(), pprof(again).value());
  EXPECT_EQ(table(profile), table(again));
}

// No control byte but the line break, no invalid UTF-8.
bool is_harmless_text(const std::string& text) {
  for (const unsigned char c : text)
    if ((c < 0x20 && c != '\n') || c == 0x7f) return false;
  try {
    (void)nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    return false;
  }
  return true;
}

TEST(HostileNames, BreakNoOutput) {
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    const Profile profile = random_profile({.seed = seed, .hostile_names = true});
    EXPECT_TRUE(nlohmann::json::accept(json(profile)));
    EXPECT_TRUE(is_harmless_text(folded(profile)));
    const std::string text = table(profile, {.rows = 100});
    EXPECT_TRUE(is_harmless_text(text));
    EXPECT_LT(text.size(), 2'000'000u) << "a name of a megabyte is cut";
    const pprof_file::Profile file = read_pprof(pprof(profile).value());
    for (const std::string& name : file.string_table()) EXPECT_TRUE(is_harmless_text(name));
    const std::string page = html(profile, kPage).value();
    EXPECT_THAT(page, testing::StartsWith(kPage.substr(0, 40)));
    EXPECT_EQ(page.find('<', 60), page.rfind("</script><p>end")) << "the data holds no markup";
  }
}

}  // namespace
}  // namespace dwell
