#include "probe/targets.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ctime>
#include <future>
#include <thread>

#include "base/fd.h"

namespace dwell::probe {
namespace {

using testing::HasSubstr;

constexpr uint64_t kTickNs = 10'000'000;

uint64_t boottime_ns() {
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

// A process of the given name that waits to be ended.
class NamedChild {
 public:
  explicit NamedChild(const char* name) {
    int ready[2];
    if (pipe(ready) != 0) return;
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_NAME, name);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (write(ready[1], "r", 1) != 1) _exit(1);
      for (;;) pause();
    }
    char byte;
    EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
  }
  ~NamedChild() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  uint32_t pid() const { return static_cast<uint32_t>(pid_); }

 private:
  pid_t pid_ = -1;
};

TEST(Targets, KnowsWhenAProcessBeganWhateverItsName) {
  for (const char* name : {"plain", "two words", "a) R 1 (b", ")", "((", "1 2 3 4 5 6 7", ""}) {
    const uint64_t before = boottime_ns();
    const NamedChild child(name);
    const uint64_t after = boottime_ns();
    const auto target = find_process(child.pid());
    ASSERT_TRUE(target) << name << ": " << target.error().message;
    EXPECT_EQ(target->id, child.pid());
    EXPECT_FALSE(target->is_thread);
    EXPECT_GE(target->start_boottime_ns + kTickNs, before) << "'" << name << "'";
    EXPECT_LE(target->start_boottime_ns, after) << "'" << name << "'";
  }
}

TEST(Targets, RefusesNumbersThatNobodyHas) {
  for (const uint32_t id : {0u, 0x7fffffffu, 0xffffffffu}) {
    const auto process = find_process(id);
    ASSERT_FALSE(process) << id;
    EXPECT_EQ(process.error().kind, Error::Kind::kUsage);
    EXPECT_THAT(process.error().message, HasSubstr(fmt::format("no process {}", id)));
    EXPECT_THAT(process.error().message, HasSubstr("ps -e"));
    const auto thread = find_thread(id);
    ASSERT_FALSE(thread) << id;
    EXPECT_EQ(thread.error().kind, Error::Kind::kUsage);
    EXPECT_THAT(thread.error().message, HasSubstr(fmt::format("no thread {}", id)));
  }
}

TEST(Targets, RefusesAProcessThatHasEnded) {
  uint32_t pid = 0;
  {
    const NamedChild child("short");
    pid = child.pid();
    EXPECT_TRUE(find_process(pid));
  }
  EXPECT_FALSE(find_process(pid));
}

TEST(Targets, TellsAThreadFromItsProcess) {
  std::promise<uint32_t> started;
  std::promise<void> stop;
  std::thread thread([&] {
    started.set_value(static_cast<uint32_t>(gettid()));
    stop.get_future().wait();
  });
  const uint32_t tid = started.get_future().get();
  const auto pid = static_cast<uint32_t>(getpid());

  const auto as_process = find_process(tid);
  ASSERT_FALSE(as_process);
  EXPECT_EQ(as_process.error().kind, Error::Kind::kUsage);
  EXPECT_THAT(as_process.error().message,
              HasSubstr(fmt::format("{} is a thread of process {}", tid, pid)));
  EXPECT_THAT(as_process.error().message, HasSubstr(fmt::format("-t {}", tid)));
  EXPECT_THAT(as_process.error().message, HasSubstr(fmt::format("-p {}", pid)));

  const auto as_thread = find_thread(tid);
  ASSERT_TRUE(as_thread) << as_thread.error().message;
  EXPECT_EQ(as_thread->id, tid);
  EXPECT_TRUE(as_thread->is_thread);
  EXPECT_GE(as_thread->start_boottime_ns, find_process(pid)->start_boottime_ns);
  EXPECT_TRUE(find_thread(pid)->is_thread) << "the first thread alone";

  stop.set_value();
  thread.join();
}

}  // namespace
}  // namespace dwell::probe
