#include "cli/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace dwell::cli {
namespace {

using testing::HasSubstr;

class CommandTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/dwell_command_test.XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    dir_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  std::string path(const std::string& name) const { return dir_ + "/" + name; }
  // Status of a command that ends by itself.
  static int await(Command& command) {
    pollfd ended = {command.exit_fd(), POLLIN, 0};
    EXPECT_EQ(poll(&ended, 1, 10'000), 1) << "it does not end";
    return command.try_wait();
  }
  static int run(const std::vector<std::string>& arguments) {
    auto command = Command::start(arguments);
    EXPECT_TRUE(command) << command.error().message;
    const Status released = command->release();
    EXPECT_TRUE(released) << released.error().message;
    return await(*command);
  }
  Error failure(const std::vector<std::string>& arguments, int status) {
    auto command = Command::start(arguments);
    EXPECT_TRUE(command) << command.error().message;
    const Status released = command->release();
    EXPECT_FALSE(released);
    EXPECT_EQ(command->try_wait(), status) << "as a shell would say it";
    return released ? Error{} : released.error();
  }
  static bool exists(uint32_t pid) { return kill(static_cast<pid_t>(pid), 0) == 0; }

  std::string dir_;
};

TEST_F(CommandTest, WaitsBeforeItsFirstInstruction) {
  auto command = Command::start({"/bin/sh", "-c", "echo ran > " + path("ran")});
  ASSERT_TRUE(command) << command.error().message;
  usleep(100'000);
  EXPECT_FALSE(std::filesystem::exists(path("ran")));
  EXPECT_EQ(command->try_wait(), -1);
  EXPECT_TRUE(exists(command->pid()));
  ASSERT_TRUE(command->release());
  EXPECT_EQ(await(*command), 0);
  EXPECT_TRUE(std::filesystem::exists(path("ran")));
}

TEST_F(CommandTest, TellsItsStatusAsAShellDoes) {
  EXPECT_EQ(run({"/bin/sh", "-c", "exit 7"}), 7);
  EXPECT_EQ(run({"/bin/sh", "-c", "kill -TERM $$"}), 128 + SIGTERM);
  EXPECT_EQ(run({"true"}), 0) << "found through PATH";
}

TEST_F(CommandTest, KeepsItsStatusOnceItHasEnded) {
  auto command = Command::start({"/bin/sh", "-c", "exit 3"});
  ASSERT_TRUE(command);
  ASSERT_TRUE(command->release());
  EXPECT_EQ(await(*command), 3);
  EXPECT_EQ(command->try_wait(), 3);
  command->forward(SIGTERM);  // to nobody: the number may be somebody else's by now
}

TEST_F(CommandTest, SaysWhatCannotBeExecuted) {
  const Error missing = failure({"/no/such/program"}, 127);
  EXPECT_EQ(missing.kind, Error::Kind::kUsage);
  EXPECT_EQ(missing.code, ENOENT);
  EXPECT_THAT(missing.message, HasSubstr("cannot execute /no/such/program"));
  EXPECT_THAT(missing.message, HasSubstr("ENOENT"));

  const Error folder = failure({dir_}, 126);
  EXPECT_EQ(folder.code, EACCES);
  EXPECT_THAT(folder.message, HasSubstr("EACCES"));
  EXPECT_THAT(failure({"\x1b[2J"}, 127).message, HasSubstr("\\x1b[2J")) << "harmless to print";
  EXPECT_EQ(failure({""}, 127).code, ENOENT);
}

TEST_F(CommandTest, LeavesNoProcessWhenItIsNeverReleased) {
  uint32_t pid = 0;
  {
    auto command = Command::start({"/bin/sh", "-c", "echo ran > " + path("ran")});
    ASSERT_TRUE(command);
    pid = command->pid();
    Command moved = std::move(*command);
    EXPECT_TRUE(exists(pid));
  }
  EXPECT_FALSE(exists(pid)) << "not even a zombie";
  EXPECT_FALSE(std::filesystem::exists(path("ran")));
}

TEST_F(CommandTest, LeavesNoProcessWhenItCannotBeExecuted) {
  auto command = Command::start({"/no/such/program"});
  ASSERT_TRUE(command);
  const uint32_t pid = command->pid();
  EXPECT_FALSE(command->release());
  EXPECT_FALSE(exists(pid)) << "not even a zombie";
}

// A recorder that dies between start and release.
TEST_F(CommandTest, GoesAwayWithItsRecorder) {
  int report[2];
  ASSERT_EQ(pipe(report), 0);
  const pid_t recorder = fork();
  if (recorder == 0) {
    auto command = Command::start({"/bin/sh", "-c", "echo ran > " + path("ran")});
    const uint32_t pid = command ? command->pid() : 0;
    if (write(report[1], &pid, sizeof pid) != sizeof pid) _exit(1);
    for (;;) pause();
  }
  uint32_t pid = 0;
  ASSERT_EQ(read(report[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
  close(report[0]);
  close(report[1]);
  ASSERT_NE(pid, 0u);
  kill(recorder, SIGKILL);
  waitpid(recorder, nullptr, 0);
  bool gone = false;
  for (int i = 0; i < 500 && !gone; ++i) {
    usleep(10'000);
    const auto stat = read_file("/proc/" + std::to_string(pid) + "/stat", 4096);
    gone = !stat || stat->find(") Z ") != std::string::npos;  // whoever inherits it may be slow
  }
  EXPECT_TRUE(gone);
  EXPECT_FALSE(std::filesystem::exists(path("ran"))) << "and was never executed";
}

TEST_F(CommandTest, PassesSignalsOn) {
  auto command = Command::start({"sleep", "100"});
  ASSERT_TRUE(command);
  ASSERT_TRUE(command->release());
  command->forward(SIGINT);
  EXPECT_EQ(await(*command), 128 + SIGINT);
}

// The recorder ignores SIGPIPE and watches SIGINT; its command must not inherit that.
TEST_F(CommandTest, RunsWithTheSignalsOfAnOrdinaryProgram) {
  const auto old_pipe = signal(SIGPIPE, SIG_IGN);
  const auto old_int = signal(SIGINT, [](int) {});
  const int status = run({"/bin/sh", "-c", "grep ^SigIgn /proc/self/status > " + path("signals")});
  signal(SIGPIPE, old_pipe);
  signal(SIGINT, old_int);
  EXPECT_EQ(status, 0);
  const std::string line = read_file(path("signals")).value();
  const uint64_t ignored = std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 16);
  EXPECT_EQ(ignored >> (SIGPIPE - 1) & 1, 0u) << line;
  EXPECT_EQ(ignored >> (SIGINT - 1) & 1, 0u) << line;
}

TEST_F(CommandTest, InheritsNoDescriptorOfTheRecorder) {
  EXPECT_EQ(run({"/bin/sh", "-c", "ls /proc/self/fd > " + path("fds")}), 0);
  auto command = Command::start({"/bin/sh", "-c", "ls /proc/self/fd > " + path("more")});
  auto other = Command::start({"true"});
  ASSERT_TRUE(command->release());
  EXPECT_EQ(await(*command), 0);
  EXPECT_EQ(read_file(path("fds")).value(), read_file(path("more")).value());
}

}  // namespace
}  // namespace dwell::cli
