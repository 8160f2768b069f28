// Bytes and positions that no sound producer writes.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "ring/fake_ring.h"

namespace dwell {
inline namespace v0 {
namespace {

Bytes header_only(uint16_t size, uint32_t type = ring::kRecordSample) {
  Bytes bytes;
  append(bytes, type);
  append(bytes, uint16_t{1});
  append(bytes, size);
  return bytes;
}

class BadSize : public testing::TestWithParam<uint16_t> {};

TEST_P(BadSize, IsReportedOnceAndTheRingGoesOn) {
  FakeRing ring(4096);
  RingReader reader = ring.reader();
  ring.put(raw_sample(pattern_bytes(20, 1)));
  ring.put(header_only(GetParam()));
  ring.put(Bytes(40));
  EXPECT_EQ(drain_all(reader).size(), 1u);
  ASSERT_TRUE(reader.corruption());
  EXPECT_EQ(reader.corruption()->position, 32u);
  EXPECT_EQ(reader.corruption()->skipped_bytes, 48u);
  EXPECT_EQ(reader.counts().corrupt, 1u);
  EXPECT_EQ(reader.counts().skipped_bytes, 48u);
  EXPECT_EQ(ring.tail(), ring.head());

  EXPECT_EQ(drain_all(reader).size(), 0u);
  EXPECT_EQ(reader.counts().corrupt, 1u) << "reported once";
  ring.put(raw_sample(pattern_bytes(20, 2)));
  ASSERT_EQ(drain_all(reader).size(), 1u);
}

// 0, 4, 7: below a header. 12: no multiple of 8. 56 and 65528: more than there is.
INSTANTIATE_TEST_SUITE_P(Sizes, BadSize, testing::Values(0, 4, 7, 12, 56, 65528));

TEST(DamagedRing, DoesNotReadASizeTwice) {
  FakeRing ring(4096);
  RingReader reader = ring.reader();
  ring.put_at(0, raw_sample(pattern_bytes(20)));
  ring.put_at(32, raw_sample(pattern_bytes(20)));
  std::atomic<bool> stop = false;
  // The other side flips the size of the first record between 32 and more than the ring.
  std::thread flipper([&] {
    auto* cell = reinterpret_cast<uint64_t*>(ring.data());
    const uint64_t sane = *cell;
    for (uint64_t i = 0; !stop; ++i)
      __atomic_store_n(cell, i % 2 == 0 ? sane | 0xfff8ull << 48 : sane, __ATOMIC_RELAXED);
  });
  uint64_t whole = 0, refused = 0;
  for (int i = 0; i < 200'000; ++i) {
    ring.start_at(0);
    ring.set_head(64);
    RingReader fresh = ring.reader();
    fresh.drain({}, [&](const Record& record) {
      ASSERT_EQ(record.size, 32u);
      ASSERT_EQ(record.body.size(), 24u);
      ++whole;
    });
    refused += fresh.counts().corrupt;
  }
  stop = true;
  flipper.join();
  EXPECT_GT(whole, 0u);
  EXPECT_GT(whole + refused, 200'000u - 1);
}

TEST(DamagedRing, ResyncsWhenMoreThanARingIsClaimed) {
  FakeRing ring(4096);
  RingReader reader = ring.reader();
  ring.set_head(4096 + 8);
  EXPECT_EQ(drain_all(reader).size(), 0u);
  EXPECT_EQ(reader.counts().corrupt, 1u);
  EXPECT_EQ(reader.counts().skipped_bytes, 4096u) << "no more than a ring can have been lost";
  EXPECT_EQ(ring.tail(), 4104u);
  ring.put(raw_sample(pattern_bytes(20)));
  EXPECT_EQ(drain_all(reader).size(), 1u);
}

TEST(DamagedRing, SurvivesAHeadThatIsNotAMultipleOfEight) {
  FakeRing ring(4096);
  RingReader reader = ring.reader();
  ring.set_head(4091);
  EXPECT_EQ(drain_all(reader).size(), 0u);
  EXPECT_EQ(reader.counts().corrupt, 1u);
  EXPECT_FALSE(reader.has_data()) << "a loop until empty must end";
  EXPECT_EQ(reader.position() % 8, 0u);
}

TEST(DamagedRing, StartsAtTheHeadWhenTheStoredTailIsImpossible) {
  for (const uint64_t tail : {uint64_t{3}, uint64_t{100} << 20, 0 - uint64_t{8}}) {
    FakeRing ring(4096);
    ring.put(raw_sample(pattern_bytes(20)));
    ring.meta().data_tail = tail;
    ring.set_head(8192);
    RingReader reader = ring.reader();
    EXPECT_EQ(reader.counts().corrupt, 1u) << tail;
    EXPECT_EQ(ring.tail(), 8192u);
    EXPECT_FALSE(reader.has_data());
  }
}

TEST(DamagedRing, IgnoresATailThatSomebodyElseOverwrote) {
  FakeRing ring(4096);
  RingReader reader = ring.reader();
  ring.put(raw_sample(pattern_bytes(20)));
  ring.meta().data_tail = 0xdeadbeef;
  ASSERT_EQ(drain_all(reader).size(), 1u);
  EXPECT_EQ(ring.tail(), 32u);
}

TEST(DamagedRing, EndsAndStaysInsideForArbitraryBytesAndPositions) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 20'000; ++round) {
    FakeRing ring(uint64_t{64} << random() % 5);
    const uint64_t mask = ring.memory().data_size - 1;
    for (uint64_t i = 0; i <= mask; i += 8) {
      uint64_t cell = random();
      // Mostly plausible sizes, so that parsing goes deep.
      if (random() % 4 != 0) cell = (cell & ~(0xffffull << 48)) | (8 + random() % 8 * 8) << 48;
      std::memcpy(ring.data() + i, &cell, 8);
    }
    ring.start_at(random() & ~uint64_t{7});
    RingReader reader = ring.reader();
    uint64_t before = reader.position();
    for (int step = 0; step < 4; ++step) {
      ring.set_head(random() % 3 == 0 ? random() : ring.head() + random() % (mask + 20));
      const uint64_t head = ring.head();
      reader.drain({}, [&](const Record& record) {
        Sample sample;
        decode_sample({.sample_type = random() % 0x20000}, record, sample);
        for (const std::byte b : record.body) before += static_cast<uint64_t>(b) & 0;
      });
      ASSERT_LE(head - reader.position(), 7u) << "drained to the head";
      ASSERT_EQ(reader.position(), ring.tail());
    }
  }
}

}  // namespace
}  // namespace v0
}  // namespace dwell
