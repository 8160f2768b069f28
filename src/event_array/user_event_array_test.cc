// A map in user space as its reader sees it: waiting, waking, snapshots.
#include "event_array/user_event_array.h"

#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include "event_array/event_session.h"
#include "event_array/user_map_fixture.h"

namespace dwell {
inline namespace v0 {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class UserReaderTest : public UserMapTest {};
INSTANTIATE_TEST_SUITE_P(Producers, UserReaderTest, testing::Bool(), producer_name);

UserEventArrayOptions every_event(std::chrono::nanoseconds sweep = 0ns) {
  return {.wakeup = {.every_n_events = 1}, .wait = {.sweep = sweep}};
}

TEST_P(UserReaderTest, IsWokenBySingleWrites) {
  const auto map = create();
  const auto array = attach(*map, every_event());
  std::atomic<uint64_t> written_at = 0;
  std::atomic<int> read = 0;
  std::thread producer([&] {
    for (int i = 0; i < 50; ++i) {
      std::this_thread::sleep_for(2ms);
      written_at = static_cast<uint64_t>(Clock::now().time_since_epoch().count());
      while (map->write(numbered(1)) != 0) std::this_thread::yield();
      while (read <= i) std::this_thread::yield();
    }
  });
  std::vector<uint64_t> late_ns;
  while (read < 50) {
    ASSERT_EQ(array->wait(10s).value(), WaitResult::kReady);
    const auto now = static_cast<uint64_t>(Clock::now().time_since_epoch().count());
    late_ns.push_back(now - written_at.load());
    read += static_cast<int>(drain_all(*array).size());
  }
  producer.join();
  std::sort(late_ns.begin(), late_ns.end());
  EXPECT_LT(late_ns[late_ns.size() / 2], 10'000'000u) << "the median, for machines with others on";
}

// No sweep: a missed wake-up would hang, so that each wait has a time after which it counts as one.
TEST_P(UserReaderTest, MissesNoWakeUp) {
  const auto map = create({.ring_bytes = 64 << 10});
  const auto array = attach(*map, every_event());
  constexpr uint64_t kWrites = 1'000'000;
  std::thread producer([&] {
    std::mt19937 random(1);
    for (uint64_t i = 0; i < kWrites; ++i) {
      while (map->write(numbered(i)) == -ENOSPC) std::this_thread::yield();
      for (volatile uint32_t spin = random() % 1000; spin > 0;) spin = spin - 1;
    }
  });
  uint64_t read = 0;
  while (read < kWrites) {
    ASSERT_EQ(array->wait(5s).value(), WaitResult::kReady) << "missed after " << read;
    // Refused writes are tried again, so that LOST records come along; samples count.
    array->drain({}, [](uint32_t, const Record&) {});
    read = array->total_stats().samples;
  }
  producer.join();
}

TEST_P(UserReaderTest, IsWokenByTheFirstRefusalThoughTheWatermarkIsFar) {
  const auto map = create();
  const auto array = attach(*map, {.wakeup = {.watermark_bytes = 2048}, .wait = {.sweep = 0ns}});
  PinToCpu pin(online_[0]);
  ASSERT_TRUE(array->arm().value());
  pollfd p = {array->fd(), POLLIN, 0};
  ASSERT_EQ(map->write(Bytes(2000)), 0);
  EXPECT_EQ(poll(&p, 1, 0), 0) << "below the watermark";
  ASSERT_EQ(map->write(Bytes(3000)), -ENOSPC);
  EXPECT_EQ(poll(&p, 1, 1000), 1) << "the kernel would let it sleep";
}

TEST_P(UserReaderTest, IsWokenAboveTheWatermarkOnly) {
  const auto map = create({.ring_bytes = 8192});
  const auto array = attach(*map, {.wakeup = {.watermark_bytes = 1024}, .wait = {.sweep = 0ns}});
  PinToCpu pin(online_[0]);
  for (int round = 0; round < 3; ++round) {
    drain_all(*array);
    ASSERT_TRUE(array->arm().value());
    pollfd p = {array->fd(), POLLIN, 0};
    for (int i = 0; i < 32; ++i) ASSERT_EQ(map->write(Bytes(20)), 0);  // 1024 bytes
    EXPECT_EQ(poll(&p, 1, 0), 0);
    ASSERT_EQ(map->write(Bytes(20)), 0);
    EXPECT_EQ(poll(&p, 1, 1000), 1);
    EXPECT_EQ(poll(&p, 1, 0), 1) << "stays readable: a level, not a latch";
  }
}

TEST_P(UserReaderTest, WorksInsideAForeignEpoll) {
  const auto map = create();
  const auto array = attach(*map, every_event());
  const Fd outer(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event = {EPOLLIN, {}};
  ASSERT_EQ(epoll_ctl(outer.get(), EPOLL_CTL_ADD, array->fd(), &event), 0);
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(array->arm().value());
    EXPECT_EQ(epoll_wait(outer.get(), &event, 1, 0), 0);
    ASSERT_EQ(map->write(numbered(i)), 0);
    ASSERT_EQ(epoll_wait(outer.get(), &event, 1, 1000), 1);
    ASSERT_EQ(drain_all(*array).at(0).id(), i);
  }
  ASSERT_EQ(map->write(numbered(1)), 0);
  EXPECT_FALSE(array->arm().value()) << "there is data: do not sleep";
}

TEST_P(UserReaderTest, WaitsAsLongAsAsked) {
  const auto map = create();
  const auto array = attach(*map);
  const auto start = Clock::now();
  EXPECT_EQ(array->wait(0ns).value(), WaitResult::kTimeout);
  EXPECT_EQ(array->wait(50ms).value(), WaitResult::kTimeout);
  EXPECT_GE(Clock::now() - start, 50ms);
  EXPECT_LT(Clock::now() - start, 500ms);
}

TEST_P(UserReaderTest, CloseWakesAWaitingThreadAndStopsOutputs) {
  for (int round = 0; round < 300; ++round) {
    const auto map = create();
    const auto array = attach(*map);
    std::thread waiter([&] { EXPECT_EQ(array->wait(kForever).value(), WaitResult::kClosed); });
    if (round % 3 != 0) std::this_thread::sleep_for(std::chrono::microseconds(round % 50 * 10));
    array->close();
    waiter.join();
    ASSERT_EQ(map->write(numbered(1)), -ENOSPC);
  }
}

TEST_P(UserReaderTest, FlushDeliversWhatLiesBelowTheWatermark) {
  const auto map = create();
  const auto array = attach(*map, {.wait = {.sweep = 0ns}});
  for (uint64_t i = 0; i < 3; ++i) ASSERT_EQ(map->write(numbered(i)), 0);
  ASSERT_TRUE(array->flush());
  EXPECT_EQ(array->wait(kForever).value(), WaitResult::kReady);
  EXPECT_EQ(drain_all(*array).size(), 3u);
  EXPECT_EQ(array->wait(kForever).value(), WaitResult::kFlushed);
  EXPECT_EQ(array->wait(1ms).value(), WaitResult::kTimeout);
}

TEST_P(UserReaderTest, ASessionReadsItLikeAKernelArray) {
  const auto map = create();
  const auto array = attach(*map);
  PinToCpu pin(online_[0]);
  for (int i = 0; i < 1000; ++i) map->write(Bytes(13, std::byte{5}));
  uint64_t events = 0, lost = 0;
  auto session = EventSession::create(
      *array, {.on_event =
                   [&](const Event& event) {
                     EXPECT_EQ(event.payload.size(), 13u) << "exact, without a prefix";
                     ++events;
                     return Verdict::kContinue;
                   },
               .on_lost = [&](uint32_t, uint64_t n) { lost += n; }});
  ASSERT_TRUE(session);
  EXPECT_EQ((*session)->poll(1s)->events, 127u);
  map->write(Bytes(13));
  (*session)->consume();
  EXPECT_EQ(events + lost, 1001u);
  EXPECT_EQ((*session)->stats().rings.lost_exact, lost);
}

TEST_P(UserReaderTest, SnapshotsARingThatIsBeingOverwritten) {
  const auto map = create({.ring_bytes = 64 << 10, .overwrite = true});
  const auto array = attach(*map);
  std::atomic<bool> stop = false;
  std::thread producer([&] {
    PinToCpu pin(online_.back());
    std::mt19937 random(2);
    for (uint64_t id = 1; !stop; ++id) ASSERT_EQ(map->write(numbered(id, 8 + random() % 200)), 0);
  });
  const uint64_t& head = map->ring(online_.back()).meta->data_head;
  while (0 - __atomic_load_n(&head, __ATOMIC_RELAXED) < 4 * map->layout().data_size)
    std::this_thread::yield();
  uint64_t records = 0;
  for (int round = 0; round < 1000; ++round) {
    uint64_t previous = 0;
    ASSERT_TRUE(array->snapshot(online_.back(), [&](const Record& record) {
      Sample sample;
      EXPECT_EQ(decode_sample(array->format(), record, sample), SampleCheck::kOk);
      const auto id = payload_as<uint64_t>(sample);
      EXPECT_TRUE(id.has_value());
      EXPECT_TRUE(previous == 0 || *id == previous - 1) << *id << " after " << previous;
      for (size_t i = 8; i < sample.payload.size(); ++i)
        EXPECT_EQ(sample.payload[i], static_cast<std::byte>(*id));
      previous = *id;
      ++records;
      return !HasFailure();
    }));
    ASSERT_FALSE(HasFailure());
  }
  stop = true;
  producer.join();
  EXPECT_GT(records, 100'000u) << "snapshots are of use under fire";
  EXPECT_EQ(map->counts(online_.back()).lost, 0u);
}

}  // namespace
}  // namespace v0
}  // namespace dwell
