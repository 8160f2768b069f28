#include "cli/events_options.h"

#include <gtest/gtest.h>

namespace dwell::cli {
namespace {

Result<EventsOptions> parse(std::vector<const char*> arguments) {
  CLI::App app;
  EventsWords words;
  add_events_command(app, words);
  arguments.insert(arguments.begin(), {"dwell", "events"});
  try {
    app.parse(static_cast<int>(arguments.size()), arguments.data());
  } catch (const CLI::ParseError& error) {
    return usage_error(error.what());
  }
  return check(words);
}

std::string refusal(std::vector<const char*> arguments) {
  const auto options = parse(std::move(arguments));
  return options ? "accepted" : options.error().message;
}

TEST(EventsOptions, AMapIsNamedInOneOfThreeWays) {
  EXPECT_EQ(parse({"12"})->id, 12u);
  EXPECT_EQ(parse({"--pin", "/sys/fs/bpf/x"})->pin, "/sys/fs/bpf/x");
  EXPECT_EQ(parse({"--name", "events"})->name, "events");
  EXPECT_TRUE(parse({"--list"})->list);
}

TEST(EventsOptions, NoneTwoOrANonsenseMapIsRefusedWithTheRemedy) {
  EXPECT_NE(refusal({}).find("--list"), std::string::npos);
  EXPECT_NE(refusal({"12", "--name", "x"}).find("exclude"), std::string::npos);
  EXPECT_NE(refusal({"--list", "12"}).find("no map"), std::string::npos);
  EXPECT_NE(refusal({"0"}).find("'0' is not the id"), std::string::npos);
  EXPECT_NE(refusal({"events"}).find("'events' is not the id"), std::string::npos);
}

TEST(EventsOptions, LimitsHaveUnitsAndBounds) {
  const auto options = parse({"3", "--count", "5", "-d", "1500ms", "--ring", "8192", "--rate"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->count, 5u);
  EXPECT_EQ(options->duration_ns, 1'500'000'000u);
  EXPECT_EQ(options->ring_bytes, 8192u);
  EXPECT_TRUE(options->rate);
  EXPECT_NE(refusal({"3", "--count", "0"}).find("--count"), std::string::npos);
  EXPECT_NE(refusal({"3", "-d", "10"}).find("--duration"), std::string::npos);
  EXPECT_NE(refusal({"3", "-d", "0"}).find("longer than 0"), std::string::npos);
  EXPECT_NE(refusal({"3", "--ring", "17"}).find("--ring"), std::string::npos);
}

}  // namespace
}  // namespace dwell::cli
