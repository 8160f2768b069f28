#include "cli/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdlib>
#include <filesystem>

#include "base/fd.h"
#include "cli/browser.h"
#include "profile/dwell_file.h"
#include "profile/random_profile.h"

namespace dwell::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ReportTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/dwell_report_test.XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    dir_ = name;
    options_.input = path("a.dwell");
    options_.no_open = true;
    profile_ = random_profile({.seed = 4});
    ASSERT_TRUE(write_dwell_file(options_.input, profile_));
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::string path(const std::string& name) const { return dir_ + "/" + name; }
  std::string content(const std::string& name) const { return read_file(path(name)).value(); }

  // What the command prints; its files stay in dir_.
  std::string run() {
    testing::internal::CaptureStdout();
    const Status status = run_report(options_);
    std::string printed = testing::internal::GetCapturedStdout();
    EXPECT_TRUE(status) << status.error().message;
    return printed;
  }
  Error failure() {
    const Status status = run_report(options_);
    EXPECT_FALSE(status);
    return status ? Error{} : status.error();
  }

  std::string dir_;
  ReportOptions options_;
  Profile profile_;
};

TEST_F(ReportTest, PrintsTheTableIfNothingElseIsAsked) {
  EXPECT_EQ(run(), table(profile_));
  options_.json = path("a.json");
  EXPECT_EQ(run(), "");
  options_.table = true;
  EXPECT_EQ(run(), table(profile_));
}

TEST_F(ReportTest, WritesSeveralOutputsAtOnce) {
  options_.folded = path("a.folded");
  options_.pprof = path("a.pb.gz");
  options_.json = "-";
  options_.html = path("a.html");
  EXPECT_EQ(run(), json(profile_));
  EXPECT_EQ(content("a.folded"), folded(profile_));
  EXPECT_EQ(content("a.pb.gz"), pprof(profile_).value());
  EXPECT_THAT(content("a.html"), HasSubstr("data-encoding=\"gzip-base64\">H4sI"));
}

TEST_F(ReportTest, ShowsTheSelectedPartInEveryOutput) {
  options_.selection.processes = {"process1"};
  options_.view = View::kRunQueue;
  options_.folded = path("a.folded");
  options_.json = "-";
  const Profile part = select(profile_, options_.selection).value();
  EXPECT_EQ(run(), json(part));
  EXPECT_EQ(content("a.folded"), folded(part, {.view = View::kRunQueue}));
}

TEST_F(ReportTest, SaysWhatIsWrongWithItsInput) {
  const std::string good = content("a.dwell");
  options_.input = path("none.dwell");
  EXPECT_THAT(failure().message, HasSubstr("none.dwell: No such file or directory (ENOENT)"));

  options_.input = path("b.dwell");
  ASSERT_TRUE(write_file_atomically(options_.input, good.substr(0, good.size() / 2)));
  EXPECT_THAT(failure().message, HasSubstr("b.dwell: truncated"));
  std::string newer = good;
  newer[8] = 2;
  ASSERT_TRUE(write_file_atomically(options_.input, newer));
  EXPECT_THAT(failure().message, HasSubstr("written by a newer dwell (format 2)"));
  ASSERT_TRUE(write_file_atomically(options_.input, "perf script output"));
  EXPECT_THAT(failure().message, HasSubstr("not a dwell file"));
  EXPECT_EQ(failure().kind, Error::Kind::kRuntime);
}

TEST_F(ReportTest, NeverOverwritesTheRecording) {
  options_.json = dir_ + "/./a.dwell";
  EXPECT_EQ(failure().kind, Error::Kind::kUsage);
  EXPECT_TRUE(read_dwell_file(options_.input));
}

TEST_F(ReportTest, RefusesTwoOutputsInOnePlace) {
  options_.json = "-";
  options_.folded = "-";
  EXPECT_THAT(failure().message, HasSubstr("only one output"));
  options_.folded.clear();
  options_.stacks_health = true;
  EXPECT_THAT(failure().message, HasSubstr("only one output"));
  options_.stacks_health = false;
  options_.json = options_.folded = path("same");
  EXPECT_THAT(failure().message, HasSubstr("both name"));
}

TEST_F(ReportTest, NamesTheFileThatItCannotWrite) {
  options_.json = path("no/such/folder.json");
  EXPECT_THAT(failure().message, HasSubstr("no/such/folder.json"));
}

TEST_F(ReportTest, FailsWhenAnOutputDeviceIsFull) {
  options_.json = "/dev/full";
  EXPECT_EQ(failure().code, ENOSPC);
}

// The options of one command line.
ReportOptions parse(std::vector<std::string> arguments) {
  CLI::App app;
  ReportOptions options;
  add_report_command(app, options);
  std::reverse(arguments.begin(), arguments.end());  // CLI11 takes them from the back
  app.parse(arguments);
  return options;
}

TEST(ReportCommand, TakesOptionsBeforeAndAfterTheFile) {
  const ReportOptions options =
      parse({"report", "--process", "nginx", "a.dwell", "--process", "redis", "--cause", "futex",
             "--view", "run-queue", "--top", "3", "--html", "a.html"});
  EXPECT_EQ(options.input, "a.dwell");
  EXPECT_THAT(options.selection.processes, ElementsAre("nginx", "redis"));
  EXPECT_THAT(options.selection.causes, ElementsAre("futex"));
  EXPECT_EQ(options.view, View::kRunQueue);
  EXPECT_EQ(options.top, 3u);
  EXPECT_EQ(options.html, "a.html");
}

TEST(ReportCommand, TakesADashAsStandardOutput) {
  EXPECT_EQ(parse({"report", "a.dwell", "--json", "-"}).json, "-");
}

TEST(ReportCommand, RefusesWhatItDoesNotKnow) {
  EXPECT_THROW(parse({"report"}), CLI::RequiredError);
  EXPECT_THROW(parse({"report", "a.dwell", "--view", "sleeping"}), CLI::ValidationError);
  EXPECT_THROW(parse({"report", "a.dwell", "--top", "0"}), CLI::ValidationError);
  EXPECT_THROW(parse({"report", "a.dwell", "b.dwell"}), CLI::ExtrasError);
}

TEST(Browser, OpensOnlyForSomebodyInFrontOfThisScreen) {
  const Surroundings desk{
      .has_display = true, .is_remote = false, .stdout_is_terminal = true, .is_root = false};
  EXPECT_TRUE(may_open_browser(desk));
  Surroundings other = desk;
  other.has_display = false;
  EXPECT_FALSE(may_open_browser(other));
  other = desk;
  other.is_remote = true;
  EXPECT_FALSE(may_open_browser(other));
  other = desk;
  other.stdout_is_terminal = false;
  EXPECT_FALSE(may_open_browser(other));
  other = desk;
  other.is_root = true;
  EXPECT_FALSE(may_open_browser(other));
}

TEST(Browser, ReadsItsSurroundingsFromTheEnvironment) {
  setenv("DISPLAY", ":0", 1);
  setenv("SSH_CONNECTION", "127.0.0.1 1 127.0.0.1 22", 1);
  EXPECT_TRUE(surroundings().has_display);
  EXPECT_TRUE(surroundings().is_remote);
  unsetenv("SSH_CONNECTION");
  unsetenv("SSH_CLIENT");
  unsetenv("SSH_TTY");
  setenv("DISPLAY", "", 1);
  unsetenv("WAYLAND_DISPLAY");
  EXPECT_FALSE(surroundings().has_display);
  EXPECT_FALSE(surroundings().is_remote);
}

}  // namespace
}  // namespace dwell::cli
