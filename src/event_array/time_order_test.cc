#include "event_array/time_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "ring/fake_ring.h"

namespace dwell {
inline namespace v0 {
namespace {

struct Emitted {
  uint32_t cpu;
  uint64_t time_ns;
  bool late;
  uint32_t type;
  uint64_t id;
};

class TimeOrderTest : public testing::Test {
 protected:
  void push(uint32_t cpu, uint64_t time_ns, uint64_t id = 0, uint32_t type = ring::kRecordSample) {
    Bytes body;
    append(body, id);
    body.resize(8 + id % 5 * 8);
    const Record record{type, 0, static_cast<uint16_t>(8 + body.size()), body};
    if (time_ns == 0)
      order_.push_behind(cpu, record);
    else
      order_.push(cpu, time_ns, record);
  }
  std::vector<uint64_t> times() const {
    std::vector<uint64_t> all;
    for (const Emitted& e : emitted_) all.push_back(e.time_ns);
    return all;
  }

  std::vector<Emitted> emitted_;
  TimeOrder order_{uint64_t{1} << 20, [this](const OrderedRecord& o) {
                     uint64_t id = 0;
                     std::memcpy(&id, o.record.body.data(), sizeof id);
                     emitted_.push_back({o.cpu, o.time_ns, o.late, o.record.type, id});
                   }};
};

TEST_F(TimeOrderTest, EmitsThreeRingsSortedUpToTheCut) {
  for (const uint64_t t : {10, 40, 70}) push(0, t);
  for (const uint64_t t : {20, 50, 80}) push(1, t);
  for (const uint64_t t : {30, 60, 90}) push(2, t);
  order_.emit_until(65);
  EXPECT_EQ(times(), (std::vector<uint64_t>{10, 20, 30, 40, 50, 60}));
  order_.emit_until(1000);
  EXPECT_EQ(times().size(), 9u);
  EXPECT_EQ(order_.late(), 0u);
  EXPECT_TRUE(order_.empty());
  EXPECT_EQ(order_.held_bytes(), 0u);
}

TEST_F(TimeOrderTest, IsNotHeldUpByAnIdleRing) {
  push(2, 5);
  order_.emit_until(10);  // rings 0 and 1 never said anything
  EXPECT_EQ(times(), std::vector<uint64_t>{5});
}

TEST_F(TimeOrderTest, DeliversALateRecordWithItsFlag) {
  push(0, 100);
  order_.emit_until(100);
  push(1, 60, 7);
  push(1, 110);
  order_.emit_until(200);
  ASSERT_EQ(emitted_.size(), 3u);
  EXPECT_FALSE(emitted_[0].late);
  EXPECT_TRUE(emitted_[1].late);
  EXPECT_EQ(emitted_[1].id, 7u);
  EXPECT_FALSE(emitted_[2].late);
  EXPECT_EQ(order_.late(), 1u);
}

TEST_F(TimeOrderTest, RepairsAnInversionWithinOneRing) {
  push(0, 50, 1);
  push(0, 45, 2);  // written by an interrupt between stamping and publishing
  push(0, 55, 3);
  order_.emit_until(100);
  EXPECT_EQ(times(), (std::vector<uint64_t>{45, 50, 55}));
  EXPECT_EQ(order_.late(), 0u);
}

TEST_F(TimeOrderTest, KeepsALossAtItsPlaceInTheRing) {
  push(0, 10, 1);
  push(0, 20, 2);
  push(0, 0, 99, ring::kRecordLost);
  push(0, 30, 3);
  push(1, 25, 4);
  order_.emit_until(100);
  std::vector<uint64_t> ids;
  for (const Emitted& e : emitted_)
    if (e.cpu == 0) ids.push_back(e.id);
  EXPECT_EQ(ids, (std::vector<uint64_t>{1, 2, 99, 3}));
}

TEST_F(TimeOrderTest, KeepsTheOrderOfEqualTimes) {
  for (uint64_t id = 0; id < 100; ++id) push(static_cast<uint32_t>(id % 3), 7, id);
  order_.emit_until(7);
  for (uint64_t id = 0; id < 100; ++id) EXPECT_EQ(emitted_[id].id, id);
}

TEST_F(TimeOrderTest, HoldsNoMoreThanItsBound) {
  TimeOrder small(1000, [](const OrderedRecord&) {});
  const Bytes body(56);
  for (uint64_t t = 1; t <= 1000; ++t) {
    small.push(0, t, {ring::kRecordSample, 0, 64, body});
    ASSERT_LE(small.held_bytes(), 1000u);
  }
  EXPECT_EQ(small.forced(), 1000u - 15u);
  EXPECT_EQ(small.late(), 0u);
}

TEST_F(TimeOrderTest, StopsWhenTold) {
  for (const uint64_t t : {1, 2, 3}) push(0, t);
  order_.emit_until(10, [&] { return emitted_.size() < 2; });
  EXPECT_EQ(times(), (std::vector<uint64_t>{1, 2}));
  order_.emit_until(10);
  EXPECT_EQ(times(), (std::vector<uint64_t>{1, 2, 3}));
}

TEST_F(TimeOrderTest, SortsRandomRingsWhoseStampsInvertWithinTheDelay) {
  std::mt19937_64 random(5);
  constexpr uint64_t kDelay = 1000;
  uint64_t now = 10'000, pushed = 0;
  for (int pass = 0; pass < 300; ++pass) {
    const uint64_t cut = now - kDelay;
    for (uint32_t cpu = 0; cpu < 8; ++cpu)
      for (uint64_t i = random() % 10; i > 0; --i, ++pushed) push(cpu, now - random() % kDelay);
    order_.emit_until(cut);
    now += random() % 500;
  }
  order_.emit_until(UINT64_MAX);
  EXPECT_EQ(emitted_.size(), pushed);
  const auto all = times();
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_EQ(order_.late(), 0u);
}

}  // namespace
}  // namespace v0
}  // namespace dwell
