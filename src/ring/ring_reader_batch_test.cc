// Batches: budgets, stops, exceptions, and when the producer gets its space back.
#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "ring/fake_ring.h"

namespace dwell {
inline namespace v0 {
namespace {

void put_samples(FakeRing& ring, uint32_t n, size_t payload = 20) {
  for (uint32_t i = 0; i < n; ++i) ring.put(raw_sample(pattern_bytes(payload, i)));
}

TEST(Batch, CoversExactlyTheRecordsBeforeAStop) {
  FakeRing ring(4096);
  RingReader reader = ring.reader();
  put_samples(ring, 5);
  uint64_t seen = 0;
  EXPECT_EQ(reader.drain({}, [&](const Record&) { return ++seen < 2; }), 2u);
  EXPECT_EQ(ring.tail(), 64u);
  EXPECT_EQ(drain_all(reader).size(), 3u) << "the rest needs no new wake-up";
}

TEST(Batch, CountsTheRecordThatThrewAsConsumed) {
  FakeRing ring(4096);
  RingReader reader = ring.reader();
  put_samples(ring, 5);
  uint64_t seen = 0;
  EXPECT_THROW(reader.drain({},
                            [&](const Record&) {
                              if (++seen == 2) throw std::runtime_error("consumer");
                            }),
               std::runtime_error);
  EXPECT_EQ(ring.tail(), 64u);
  EXPECT_EQ(drain_all(reader).size(), 3u);
}

TEST(Batch, EndsAtItsRecordBudget) {
  FakeRing ring(4096);
  RingReader reader = ring.reader();
  put_samples(ring, 25);
  EXPECT_EQ(drain_all(reader, {.max_records = 10}).size(), 10u);
  EXPECT_EQ(drain_all(reader, {.max_records = 10}).size(), 10u);
  EXPECT_EQ(drain_all(reader, {.max_records = 10}).size(), 5u);
  EXPECT_EQ(drain_all(reader, {.max_records = 10}).size(), 0u);
}

TEST(Batch, EndsWithTheRecordThatUsesUpItsByteBudget) {
  FakeRing ring(4096);
  RingReader reader = ring.reader();
  put_samples(ring, 10);  // 32 bytes each
  EXPECT_EQ(drain_all(reader, {.max_bytes = 1}).size(), 1u);
  EXPECT_EQ(drain_all(reader, {.max_bytes = 64}).size(), 2u);
  EXPECT_EQ(drain_all(reader, {.max_bytes = 65}).size(), 3u);
}

TEST(Batch, EndsAtTheHeadItBeganWith) {
  FakeRing ring(1 << 20);
  RingReader reader = ring.reader();
  put_samples(ring, 10);
  // The producer is always ahead: each record read is answered with two more.
  const uint64_t records = reader.drain({}, [&](const Record&) { put_samples(ring, 2); });
  EXPECT_EQ(records, 10u);
}

TEST(Batch, ServesAQuietRingBesideAFloodedOne) {
  FakeRing flooded(1 << 16), quiet(4096);
  RingReader flooded_reader = flooded.reader(), quiet_reader = quiet.reader();
  std::atomic<bool> stop = false;
  std::thread producer([&] {
    const Bytes bytes = raw_sample(pattern_bytes(20));
    while (!stop)
      if (flooded.free_bytes() >= bytes.size()) flooded.put(bytes);
  });
  uint64_t from_flooded = 0;
  for (int round = 0; round < 2000; ++round) {
    quiet.put(raw_sample(pattern_bytes(8)));
    from_flooded += flooded_reader.drain({.max_records = 1000}, [](const Record&) {});
    ASSERT_EQ(quiet_reader.drain({}, [](const Record&) {}), 1u) << "within one round";
  }
  stop = true;
  producer.join();
  EXPECT_EQ(flooded_reader.counts().corrupt, 0u);
  EXPECT_EQ(from_flooded, flooded_reader.counts().records);
}

TEST(Batch, GivesSpaceBackWhenHalfTheRingIsConsumed) {
  FakeRing ring(4096);
  RingReader reader = ring.reader();
  put_samples(ring, 127);  // 4064 bytes
  uint64_t seen = 0;
  reader.drain({}, [&](const Record&) {
    ++seen;
    if (seen == 64) {
      EXPECT_EQ(ring.tail(), 0u);
    }
    if (seen == 65) {
      EXPECT_EQ(ring.tail(), 2048u) << "before the batch ends";
    }
  });
  EXPECT_EQ(seen, 127u);
  EXPECT_EQ(ring.tail(), 4064u);
}

TEST(Batch, HoldKeepsEveryRecordValidToTheEnd) {
  FakeRing ring(4096);
  ring.start_at(2048 + 8);  // one record wraps
  RingReader reader = ring.reader();
  put_samples(ring, 127);
  {
    std::vector<Record> held;
    auto batch = reader.begin({.hold = true});
    while (const Record* record = batch.next()) held.push_back(*record);
    ASSERT_EQ(held.size(), 127u);
    EXPECT_EQ(ring.tail(), 2056u) << "nothing given back yet";
    for (uint32_t i = 0; i < held.size(); ++i) {
      Sample sample;
      ASSERT_EQ(decode_sample({}, held[i], sample), SampleCheck::kOk);
      const Bytes expected = pattern_bytes(20, i);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), sample.payload.begin())) << i;
    }
  }
  EXPECT_EQ(ring.tail(), ring.head());
}

TEST(Batch, LeavesTheTailAloneWhenNothingWasRead) {
  FakeRing ring(4096);
  RingReader reader = ring.reader();
  ring.meta().data_tail = 0x5555;  // would be overwritten by a store
  drain_all(reader);
  EXPECT_EQ(ring.tail(), 0x5555u);
}

TEST(Batch, HandsRecordsFromThreadToThread) {
  FakeRing ring(8192);
  RingReader reader = ring.reader();
  constexpr uint32_t kRecords = 200'000;
  std::thread producer([&] {
    for (uint32_t i = 0; i < kRecords; ++i) {
      Bytes payload;
      append(payload, i);
      payload.resize(4 + i % 60, static_cast<std::byte>(i));
      const Bytes bytes = raw_sample(payload);
      while (ring.free_bytes() < bytes.size()) std::this_thread::yield();
      ring.put(bytes);
    }
  });
  uint32_t next = 0;
  while (next < kRecords) {
    reader.drain({}, [&](const Record& record) {
      Sample sample;
      ASSERT_EQ(decode_sample({}, record, sample), SampleCheck::kOk);
      ASSERT_EQ(payload_as<uint32_t>(sample), next);
      const size_t size = 4 + next % 60;
      for (size_t k = 4; k < size; ++k) ASSERT_EQ(sample.payload[k], static_cast<std::byte>(next));
      ++next;
    });
    if (!reader.has_data()) std::this_thread::yield();
  }
  producer.join();
  EXPECT_EQ(reader.counts().corrupt, 0u);
}

}  // namespace
}  // namespace v0
}  // namespace dwell
