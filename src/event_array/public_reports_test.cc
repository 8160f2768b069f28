// What users of other readers reported in public, on our own array, where sanitizers see it:
// closing at any moment, many writers, subscribing again and again.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/sanitizers.h"
#include "event_array/user_map_fixture.h"

namespace dwell {
inline namespace v0 {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kWritesEach = DWELL_TSAN ? 10'000 : 100'000;

// DWELL_TEST_ROUNDS for long runs.
int rounds() {
  const char* text = getenv("DWELL_TEST_ROUNDS");
  return text != nullptr ? atoi(text) : 300;
}

struct Held {
  size_t descriptors = 0;
  size_t mappings = 0;  // of event maps, which are memfds
  bool operator==(const Held&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Held& held) {
  return out << held.descriptors << " descriptors, " << held.mappings << " mappings";
}

Held held_now() {
  Held held;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++held.descriptors;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    held.mappings += line.find("/memfd:") != std::string::npos;
  return held;
}

class PublicReportTest : public UserMapTest {};
INSTANTIATE_TEST_SUITE_P(Producers, PublicReportTest, testing::Bool(), producer_name);

// A flood of outputs while it lives.
class Flood {
 public:
  explicit Flood(UserEventMap& map)
      : thread_([this, &map] {
          while (!stop_) map.write(numbered(1));
        }) {}
  ~Flood() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST_P(PublicReportTest, ClosesAtAnyMomentUnderAFlood) {
  const Held before = held_now();
  for (int round = 0; round < rounds() && !HasFailure(); ++round) {
    const auto map = create();
    const auto array = attach(*map);
    Flood flood(*map);
    std::atomic<bool> closed = false;
    std::atomic<uint64_t> late = 0;
    std::thread consumer([&] {
      while (array->wait(kForever).value() == WaitResult::kReady)
        array->drain({}, [&](uint32_t, const Record&) { late += closed; });
    });
    if (round % 4 != 0) std::this_thread::sleep_for(std::chrono::microseconds(round % 200 * 10));
    array->close();
    closed = true;
    consumer.join();
    EXPECT_EQ(late, 0u) << "a consumer was called after close() returned";
    EXPECT_EQ(array->wait(0ns).value(), WaitResult::kClosed);
  }
  EXPECT_EQ(held_now(), before);
}

TEST_P(PublicReportTest, IsDestroyedWithoutCloseUnderAFlood) {
  const Held before = held_now();
  for (int round = 0; round < rounds() / 3; ++round) {
    const auto map = create();
    Flood flood(*map);
    const auto array = attach(*map);
    if (round % 2 == 0) array->drain({}, [](uint32_t, const Record&) {});
  }
  EXPECT_EQ(held_now(), before);
}

TEST_P(PublicReportTest, CloseWaitsForTheConsumerThatRuns) {
  const auto map = create();
  const auto array = attach(*map);
  ASSERT_EQ(map->write(numbered(1)), 0);
  std::atomic<bool> inside = false, left = false;
  std::thread consumer([&] {
    array->drain({}, [&](uint32_t, const Record&) {
      inside = true;
      std::this_thread::sleep_for(50ms);
      left = true;
    });
  });
  while (!inside) std::this_thread::yield();
  array->close();
  EXPECT_TRUE(left) << "close() returned while a consumer ran";
  consumer.join();
}

TEST_P(PublicReportTest, AConsumerMayClose) {
  const auto map = create();
  const auto array = attach(*map);
  PinToCpu pin(online_[0]);
  for (uint64_t id = 0; id < 5; ++id) ASSERT_EQ(map->write(numbered(id)), 0);
  EXPECT_EQ(array->drain({}, [&](uint32_t, const Record&) { array->close(); }), 1u);
  EXPECT_EQ(array->wait(kForever).value(), WaitResult::kClosed);
}

TEST_P(PublicReportTest, EightWritersAddUp) {
  const auto map = create({.ring_bytes = 16 << 10});
  const auto array = attach(*map);
  std::atomic<uint64_t> ok = 0, refused = 0;
  std::atomic<int> writing = 8;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 8; ++writer)
    writers.emplace_back([&] {
      uint64_t own_ok = 0;
      for (uint64_t i = 0; i < kWritesEach; ++i) own_ok += map->write(numbered(i)) == 0;
      ok += own_ok;
      refused += kWritesEach - own_ok;
      --writing;
    });
  for (bool last = false; !last;) {
    last = writing == 0;
    array->drain({}, [](uint32_t, const Record&) {});
    std::this_thread::yield();
  }
  for (std::thread& writer : writers) writer.join();
  const RingStats stats = array->total_stats();
  uint64_t busy = 0;
  for (uint32_t i = 0; i < map->rings(); ++i) busy += map->counts(i).drop_busy;
  EXPECT_EQ(stats.samples, ok);
  EXPECT_EQ(stats.lost_exact.value_or(0) + busy, refused);
  EXPECT_EQ(stats.samples + *stats.lost_exact + busy, 8 * kWritesEach);
}

TEST_P(PublicReportTest, IsSubscribedToAThousandTimes) {
  const auto map = create();
  const Held before = held_now();
  for (uint64_t id = 0; id < 1000; ++id) {
    const auto array = attach(*map);
    ASSERT_NE(array, nullptr) << "subscription " << id;
    ASSERT_EQ(map->write(numbered(id)), 0);
    const auto got = drain_all(*array);
    ASSERT_EQ(got.size(), 1u);
    ASSERT_EQ(got[0].id(), id);
  }
  EXPECT_EQ(held_now(), before);
}

}  // namespace
}  // namespace v0
}  // namespace dwell
