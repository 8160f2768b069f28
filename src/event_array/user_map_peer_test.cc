// Other processes at the same map: they die, they scribble, they hand over descriptors.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "event_array/user_event_map.h"
#include "event_array/user_map_fixture.h"

namespace dwell {
inline namespace v0 {
namespace {

constexpr uint64_t kCurrent = ring::kCurrentCpu;

class UserPeerTest : public UserMapTest {};
INSTANTIATE_TEST_SUITE_P(Producers, UserPeerTest, testing::Bool(), producer_name);

TEST_P(UserPeerTest, TakesAScribbledTailForAFullRing) {
  const auto map = create();
  const auto array = attach(*map);
  PinToCpu pin(online_[0]);
  ring::MetaPage& meta = *map->ring(online_[0]).meta;
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(map->output(kCurrent, numbered(static_cast<uint64_t>(i))), 0);
    drain_all(*array);
  }
  const uint64_t head = meta.data_head;
  for (const uint64_t tail : {head + 8, head - 2 * 4096, head - 4096, head + 1, head - 4097,
                              uint64_t{0x123456789abcdef}, UINT64_MAX}) {
    meta.data_tail = tail;
    EXPECT_EQ(map->output(kCurrent, numbered(1)), -ENOSPC) << tail;
    EXPECT_EQ(meta.data_head, head);
  }
  meta.data_tail = head;
  EXPECT_EQ(map->output(kCurrent, numbered(1)), 0);
}

TEST_P(UserPeerTest, ReportsWhatARogueProducerDoesToTheHead) {
  const auto map = create();
  const auto array = attach(*map);
  PinToCpu pin(online_[0]);
  ring::MetaPage& meta = *map->ring(online_[0]).meta;
  uint64_t corrupt = 0;
  for (const uint64_t jump : {uint64_t{40}, uint64_t{1} << 40, uint64_t{4099}, 0 - uint64_t{64}}) {
    __atomic_store_n(&meta.data_head, meta.data_head + jump, __ATOMIC_RELEASE);
    drain_all(*array);
    EXPECT_FALSE(array->has_data());
    EXPECT_GT(array->stats(online_[0]).corrupt, corrupt) << jump;
    corrupt = array->stats(online_[0]).corrupt;
    __atomic_store_n(&meta.data_head, (meta.data_head + 7) & ~uint64_t{7}, __ATOMIC_RELEASE);
    drain_all(*array);
    meta.data_tail = meta.data_head;
    corrupt = array->stats(online_[0]).corrupt;
  }
}

TEST_P(UserPeerTest, ContinuesAtTheTailOfAReaderThatDied) {
  const auto map = create();
  PinToCpu pin(online_[0]);
  {
    const auto keep_attached = attach(*map);
    for (uint64_t id = 0; id < 10; ++id) ASSERT_EQ(map->output(kCurrent, numbered(id)), 0);
  }
  const pid_t child = fork();
  if (child == 0) {
    auto array = UserEventArray::open(*map);
    (*array)->drain({.max_records = 4}, [](uint32_t, const Record&) {});
    (*array)->drain({}, [](uint32_t, const Record&) { _exit(0); });  // in the middle of a batch
    _exit(1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  const auto got = drain_all(*attach(*map));
  ASSERT_EQ(got.size(), 6u) << "the unpublished batch again, nothing before it";
  EXPECT_EQ(got[0].id(), 4u);
}

TEST_P(UserPeerTest, ReachesAnotherProcessThroughASocket) {
  const auto map = create();
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const Fd ours(pair[0]), theirs(pair[1]);
  const auto array = attach(*map, {.wakeup = {.every_n_events = 1}});
  const pid_t child = fork();
  if (child == 0) {
    const auto received = UserEventMap::receive(theirs.get());
    if (!received) _exit(1);
    PinToCpu pin(online_[0]);
    _exit((*received)->output(kCurrent, numbered(77)) == 0 ? 0 : 2);
  }
  ASSERT_TRUE(map->send(ours.get()));
  EXPECT_EQ(array->wait(std::chrono::seconds(5)).value(), WaitResult::kReady);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const auto got = drain_all(*array);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].id(), 77u);
  EXPECT_EQ(got[0].cpu, online_[0]);
}

TEST_P(UserPeerTest, RefusesDescriptorsThatAreNoMap) {
  const auto refused = [](Fd fd) { return !UserEventMap::open(std::move(fd), Fd(dup(0))); };
  EXPECT_TRUE(refused(Fd(-1)));
  EXPECT_TRUE(refused(Fd(::open("/dev/null", O_RDWR | O_CLOEXEC))));
  const auto memory = [](uint64_t size, const UserMapHeader* header, bool seal) {
    Fd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    EXPECT_EQ(ftruncate(fd.get(), static_cast<off_t>(size)), 0);
    if (header != nullptr) {
      EXPECT_EQ(pwrite(fd.get(), header, sizeof *header, 0), 56);
    }
    if (seal) fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
    return fd;
  };
  UserMapHeader sound = {};
  sound.magic = UserMapHeader::kMagic;
  sound.version = 1;
  sound.header_size = sizeof sound;
  sound.incompatible = UserMapHeader::kLockMode;
  sound.rings = sound.slots = 1;
  sound.data_size = sound.meta_size = 4096;
  EXPECT_FALSE(refused(memory(3 * 4096, &sound, true)));
  EXPECT_TRUE(refused(memory(3 * 4096, &sound, false))) << "not sealed";
  EXPECT_TRUE(refused(memory(3 * 4096 - 1, &sound, true))) << "shorter than it says";
  EXPECT_TRUE(refused(memory(3 * 4096, nullptr, true)));
  EXPECT_TRUE(refused(memory(0, nullptr, true)));
  const auto with = [&](auto change) {
    UserMapHeader header = sound;
    change(header);
    return memory(3 * 4096, &header, true);
  };
  EXPECT_TRUE(refused(with([](auto& h) { h.version = 2; })));
  EXPECT_TRUE(refused(with([](auto& h) { h.incompatible |= 4; }))) << "a feature of the future";
  EXPECT_FALSE(refused(with([](auto& h) { h.compatible |= 0x80; }))) << "one that may be ignored";
  EXPECT_TRUE(refused(with([](auto& h) { h.rings = 0; })));
  EXPECT_TRUE(refused(with([](auto& h) { h.rings = 2; })));
  EXPECT_TRUE(refused(with([](auto& h) { h.slots = 0; })));
  EXPECT_TRUE(refused(with([](auto& h) { h.rings = h.slots = 0xffffffff; })));
  EXPECT_TRUE(refused(with([](auto& h) { h.data_size = 4097; })));
  EXPECT_TRUE(refused(with([](auto& h) { h.data_size = uint64_t{1} << 63; })));
  EXPECT_TRUE(refused(with([](auto& h) { h.meta_size = 0; })));
}

}  // namespace
}  // namespace v0
}  // namespace dwell
