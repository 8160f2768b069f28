// The history of processes as mapping events tell it, most with invented pids that no process has.
#include "symbolize/process_maps.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/clock.h"

namespace dwell::symbolize {
namespace {

constexpr uint32_t kPid = 4'300'000;  // above the largest pid of any kernel
constexpr uint64_t kSecond = 1'000'000'000;

class ProcessMapsTest : public testing::Test {
 protected:
  Mapping file(const std::string& path, uint64_t time_ns, uint64_t start = 0x1000) {
    Mapping mapping;
    mapping.start = start;
    mapping.end = start + 0x1000;
    mapping.from_ns = time_ns;
    Backing backing;
    backing.path = path;
    backing.inode = 1;
    mapping.backing = std::make_shared<const Backing>(backing);
    return mapping;
  }
  ProcessKey key(uint64_t start_ns, uint32_t exec_id, uint32_t pid = kPid) {
    return {pid, exec_id, start_ns + lead_ns_};
  }
  std::string path_at(const ProcessKey& process, uint64_t time_ns, uint64_t address = 0x1800) {
    const Mapping* mapping = maps_.image(process, time_ns).mappings->find(address, time_ns);
    return mapping == nullptr ? "none" : mapping->backing->path;
  }
  const uint64_t lead_ns_ = boottime_lead_ns();
  Roots roots_;
  FileWorker worker_;
  ProcessMaps maps_{roots_, worker_};
};

TEST_F(ProcessMapsTest, AChildHasItsParentsMappingsUntilItExecs) {
  maps_.on_fork(kPid + 1, kPid, 1 * kSecond);
  maps_.on_exec(kPid, 2 * kSecond);
  maps_.on_map(kPid, file("/parent", 2 * kSecond + 1));
  maps_.on_fork(kPid, kPid + 2, 3 * kSecond);
  const ProcessKey child = key(3 * kSecond - 1000, 1, kPid + 2);
  EXPECT_EQ(path_at(child, 3 * kSecond + 5), "/parent");
  maps_.on_map(kPid + 2, file("/own", 4 * kSecond));
  EXPECT_EQ(path_at(child, 4 * kSecond + 5), "/own");
  EXPECT_EQ(path_at(key(1 * kSecond, 1), 4 * kSecond + 5), "/parent");  // not the parent's
}

TEST_F(ProcessMapsTest, AnExecBeginsAnotherImageAtTheSameAddresses) {
  maps_.on_fork(kPid + 1, kPid, 1 * kSecond);
  maps_.on_exec(kPid, 2 * kSecond);
  maps_.on_map(kPid, file("/a", 2 * kSecond + 1));
  maps_.on_exec(kPid, 5 * kSecond);
  maps_.on_map(kPid, file("/b", 5 * kSecond + 1));
  const ProcessKey first = key(1 * kSecond, 8), second = key(1 * kSecond, 9);
  EXPECT_EQ(path_at(first, 3 * kSecond), "/a");
  EXPECT_EQ(path_at(second, 6 * kSecond), "/b");
  EXPECT_EQ(path_at(first, 6 * kSecond), "/a");  // the key decides once it is known
  ASSERT_NE(maps_.find_image(first), nullptr);
  EXPECT_EQ(maps_.find_image(first)->executable, "/a");
  EXPECT_EQ(maps_.find_image(second)->executable, "/b");
}

TEST_F(ProcessMapsTest, AKeyThatWasNoticedAfterTheExecStillNamesTheProgramBefore) {
  maps_.on_fork(kPid + 1, kPid, 1 * kSecond);
  maps_.on_map(kPid, file("/shell", 1 * kSecond + 1));
  maps_.on_exec(kPid, 2 * kSecond);
  maps_.on_map(kPid, file("/program", 2 * kSecond + 1));
  const ProcessKey shell = key(1 * kSecond, 4), program = key(1 * kSecond, 5);
  maps_.likely_image(shell);
  EXPECT_EQ(path_at(shell, 1 * kSecond + 500), "/shell");
  EXPECT_EQ(path_at(program, 3 * kSecond), "/program");
  EXPECT_EQ(maps_.find_image(shell)->executable, "/shell");
  EXPECT_EQ(maps_.find_image(program)->executable, "/program");
}

TEST_F(ProcessMapsTest, AnExecThatNoEventToldOfIsKnownByItsKey) {
  maps_.on_fork(kPid + 1, kPid, 1 * kSecond);
  maps_.on_map(kPid, file("/a", 1 * kSecond + 1));
  EXPECT_EQ(path_at(key(1 * kSecond, 3), 2 * kSecond), "/a");
  EXPECT_EQ(path_at(key(1 * kSecond, 4), 3 * kSecond), "none");  // never a name of the old program
  EXPECT_EQ(path_at(key(1 * kSecond, 3), 4 * kSecond), "/a");
}

TEST_F(ProcessMapsTest, AReusedPidIsAnotherProcess) {
  maps_.on_fork(kPid + 1, kPid, 1 * kSecond);
  maps_.on_exec(kPid, 1 * kSecond + 10);
  maps_.on_map(kPid, file("/a", 1 * kSecond + 20));
  maps_.on_fork(kPid + 1, kPid, 9 * kSecond);
  maps_.on_exec(kPid, 9 * kSecond + 10);
  maps_.on_map(kPid, file("/b", 9 * kSecond + 20));
  const ProcessKey first = key(1 * kSecond - 5000, 1), second = key(9 * kSecond - 5000, 1);
  EXPECT_EQ(path_at(second, 10 * kSecond), "/b");
  EXPECT_EQ(path_at(first, 10 * kSecond), "/a");
  EXPECT_EQ(path_at(key(5 * kSecond, 1), 6 * kSecond), "none");  // a third one, unseen
}

TEST_F(ProcessMapsTest, ThreadsAreNoProcesses) {
  maps_.on_fork(kPid + 1, kPid, 1 * kSecond);
  maps_.on_map(kPid, file("/a", 1 * kSecond + 20));
  const size_t lives = maps_.lives();
  maps_.on_fork(kPid, kPid, 2 * kSecond);
  EXPECT_EQ(maps_.lives(), lives);
}

// Under load the recorder looks at /proc after the exec, but before it has read its event: what it
// sees is another program's, and must not make it take the old one for the new one.
TEST_F(ProcessMapsTest, AReadingThatCameTooLateForAnImageIsNoReading) {
  int gate[2];
  ASSERT_EQ(pipe(gate), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    if (read(gate[0], &byte, 1) == 1) execl("/bin/sleep", "sleep", "30", nullptr);
    _exit(1);
  }
  const auto process = LiveProcess::find(static_cast<uint32_t>(child));
  ASSERT_TRUE(process);
  Image& before = maps_.running_image(*process);
  const std::string own = before.executable;
  EXPECT_EQ(own, read_link("/proc/self/exe"));
  const uint64_t exec_ns = monotonic_ns();
  ASSERT_EQ(write(gate[1], "g", 1), 1);
  while (process->executable() == own) usleep(1000);
  std::this_thread::sleep_for(std::chrono::milliseconds(150));  // until it may be read again
  maps_.refresh(*process, before);
  EXPECT_EQ(before.executable, own);
  maps_.on_exec(static_cast<uint32_t>(child), exec_ns);
  const std::string now = maps_.running_image(*process).executable;
  EXPECT_TRUE(now.empty() || now.ends_with("sleep") || now.ends_with("busybox")) << now;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  close(gate[0]);
  close(gate[1]);
}

TEST_F(ProcessMapsTest, ForgetsTheOldestProcessesBeyondItsBound) {
  for (uint32_t i = 0; i < ProcessMaps::kLivesMax + 100; ++i)
    maps_.on_fork(kPid + 200'000 + i, kPid + 200'001 + i, i * 1000);
  EXPECT_EQ(maps_.lives(), ProcessMaps::kLivesMax);
}

TEST_F(ProcessMapsTest, ForgetsTheOldestImagesOfAProcessThatExecsForEver) {
  maps_.on_fork(kPid + 1, kPid, 1 * kSecond);
  for (uint64_t i = 1; i < 1000; ++i) {
    maps_.on_exec(kPid, (i + 1) * kSecond);
    maps_.on_map(kPid, file("/p" + std::to_string(i), (i + 1) * kSecond + 1));
  }
  EXPECT_EQ(path_at(key(1 * kSecond, 999), 1001 * kSecond), "/p999");
}

}  // namespace
}  // namespace dwell::symbolize
