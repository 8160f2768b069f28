// Producers without restartable sequences: the lock, its takeover, and what a handler gets.
#include "event_array/ring_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "event_array/user_map_fixture.h"

namespace dwell {
inline namespace v0 {
namespace {

TEST(RingLock, IsTakenOverFromAKilledOwner) {
  auto* word = new (mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
      uint64_t{0};
  for (int i = 0; i < 20; ++i) {
    const pid_t owner = fork();
    if (owner == 0) {
      take_ring_lock(*word);
      for (;;) pause();
    }
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0) std::this_thread::yield();
    if (i == 0) {
      EXPECT_EQ(take_ring_lock(*word), LockOutcome::kBusy) << "the owner lives";
    }
    kill(owner, SIGKILL);
    siginfo_t info;
    waitid(P_PID, static_cast<id_t>(owner), &info, WEXITED | WNOWAIT);  // a zombie is dead, too
    ASSERT_EQ(take_ring_lock(*word), LockOutcome::kTaken);
    release_ring_lock(*word);
    waitpid(owner, nullptr, 0);
  }
}

TEST(RingLock, IsNotHeldByANewThreadWithTheOwnersId) {
  uint64_t word = own_lock_identity() ^ uint64_t { 1 } << 30;  // our id, another start time
  EXPECT_EQ(take_ring_lock(word), LockOutcome::kTaken);
  release_ring_lock(word);
  EXPECT_EQ(word, 0u);
}

TEST(RingLock, GivesUpOnALivingOwnerWithinAMillisecond) {
  uint64_t word = 0;
  std::atomic<bool> held = false, done = false;
  std::thread owner([&] {
    take_ring_lock(word);
    held = true;
    while (!done) std::this_thread::yield();
    release_ring_lock(word);
  });
  while (!held) std::this_thread::yield();
  timespec before = {}, after = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  EXPECT_EQ(take_ring_lock(word), LockOutcome::kBusy);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  EXPECT_LT((after.tv_sec - before.tv_sec) * 1'000'000'000 + after.tv_nsec - before.tv_nsec,
            1'000'000);
  done = true;
  owner.join();
}

TEST(LockedMap, AHandlerThatInterruptsTheOwnerIsBusy) {
  const auto map = std::move(*UserEventMap::create({.ring_bytes = 4096, .force_lock = true}));
  const auto array = std::move(*UserEventArray::open(*map));
  const uint32_t cpu = read_cpu_list("online")->front();
  PinToCpu pin(cpu);
  // As inside output(): this very thread holds the lock.
  uint64_t& lock = map->ring(cpu).meta->extension.lock;
  ASSERT_EQ(take_ring_lock(lock), LockOutcome::kTaken);
  EXPECT_EQ(map->write(numbered(1)), -EBUSY);
  EXPECT_EQ(map->counts(cpu).drop_busy, 1u);
  release_ring_lock(lock);
  EXPECT_EQ(map->write(numbered(1)), 0);
}

// The tunable is read at start, so that the test runs itself again under it.
TEST(LockedMap, ReplacesRestartableSequencesWhereTheyAreOff) {
  if (getenv("DWELL_TEST_WITHOUT_RSEQ") == nullptr) {
    const pid_t child = fork();
    if (child == 0) {
      setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0", 1);
      setenv("DWELL_TEST_WITHOUT_RSEQ", "1", 1);
      execl("/proc/self/exe", "self",
            "--gtest_filter=LockedMap.Replaces*:*TwoProcesses*/Lock:*UserMapTest*/Lock",
            static_cast<char*>(nullptr));
      _exit(9);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    return;
  }
  EXPECT_FALSE(restartable_sequences_work());
  // A map whose producers are restartable cannot be used here.
  Fd memory(memfd_create("restartable", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  UserMapHeader header = {};
  header.magic = UserMapHeader::kMagic;
  header.version = UserMapHeader::kVersion;
  header.header_size = sizeof header;
  header.rings = header.slots = 1;
  header.data_size = header.meta_size = 4096;
  ASSERT_EQ(ftruncate(memory.get(), 3 * 4096), 0);
  ASSERT_EQ(pwrite(memory.get(), &header, sizeof header, 0), static_cast<long>(sizeof header));
  fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
  const auto refused = UserEventMap::open(std::move(memory), Fd(dup(0)));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("restartable"), std::string::npos);

  const auto map = std::move(*UserEventMap::create({.ring_bytes = 4096, .buffer_unread = true}));
  EXPECT_EQ(map->layout().mode, ProducerMode::kLock) << "chosen without being asked";
  EXPECT_EQ(map->write(numbered(5)), 0);
  EXPECT_EQ(drain_all(*std::move(*UserEventArray::open(*map))).at(0).id(), 5u);
}

}  // namespace
}  // namespace v0
}  // namespace dwell
