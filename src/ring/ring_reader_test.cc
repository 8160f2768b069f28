// Records that a sound producer wrote, read back.
#include "ring/ring_reader.h"

#include <gtest/gtest.h>

#include <random>

#include "ring/fake_ring.h"

namespace dwell {
inline namespace v0 {
namespace {

TEST(RingReader, FindsNothingInAnEmptyRing) {
  FakeRing ring(4096);
  RingReader reader = ring.reader();
  EXPECT_EQ(reader.drain({}, [](const Record&) {}), 0u);
  EXPECT_EQ(ring.tail(), 0u);
}

TEST(RingReader, ReadsOneSample) {
  FakeRing ring(4096);
  RingReader reader = ring.reader();
  ring.put(raw_sample(pattern_bytes(4)));
  const auto records = drain_all(reader);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(payload_of(records[0]), pattern_bytes(4));
  EXPECT_EQ(ring.tail(), 16u);
}

TEST(RingReader, KeepsTheOrderOfSamplesOfDifferentSizes) {
  FakeRing ring(4096);
  RingReader reader = ring.reader();
  ring.put(raw_sample(pattern_bytes(4, 1)));
  ring.put(raw_sample(pattern_bytes(100, 2)));
  const auto records = drain_all(reader);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(payload_of(records[0]), pattern_bytes(4, 1));
  EXPECT_EQ(payload_of(records[1]), pattern_bytes(100, 2));
  EXPECT_EQ(ring.tail(), 16u + 112u);
}

TEST(RingReader, HandsOutALostRecordAndSumsIt) {
  FakeRing ring(4096);
  RingReader reader = ring.reader();
  ring.put(lost_record(42, 7));
  const auto records = drain_all(reader);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].type, ring::kRecordLost);
  EXPECT_EQ(reader.counts().lost, 7u);
  EXPECT_EQ(reader.counts().by_type[ring::kRecordSample], 0u);
}

TEST(RingReader, HandsOutLostBeforeTheSampleBehindIt) {
  FakeRing ring(4096);
  RingReader reader = ring.reader();
  ring.put(lost_record(42, 7));
  ring.put(raw_sample(pattern_bytes(8)));
  const auto records = drain_all(reader);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].type, ring::kRecordLost);
  EXPECT_EQ(records[1].type, ring::kRecordSample);
}

TEST(RingReader, JoinsABodyThatWraps) {
  FakeRing ring(4096);
  ring.start_at(4096 - 16);
  RingReader reader = ring.reader();
  ring.put(raw_sample(pattern_bytes(100)));
  ring.put(raw_sample(pattern_bytes(20, 2)));
  const auto records = drain_all(reader);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(payload_of(records[0]), pattern_bytes(100));
  EXPECT_EQ(payload_of(records[1]), pattern_bytes(20, 2));
}

TEST(RingReader, UsesNoScratchForARecordThatEndsAtTheEdge) {
  FakeRing ring(4096);
  ring.start_at(4096 - 112);
  RingReader reader = ring.reader();
  ring.put(raw_sample(pattern_bytes(100)));
  ring.put(raw_sample(pattern_bytes(4, 2)));
  std::vector<const std::byte*> bodies;
  reader.drain({}, [&](const Record& r) { bodies.push_back(r.body.data()); });
  ASSERT_EQ(bodies.size(), 2u);
  EXPECT_EQ(bodies[0], ring.data() + 4096 - 112 + 8);
  EXPECT_EQ(bodies[1], ring.data() + 8);
}

TEST(RingReader, ReadsRawSizeFromTheFrontWhenOnlyTheHeaderFitsTheEnd) {
  FakeRing ring(4096);
  ring.start_at(4096 - 8);
  RingReader reader = ring.reader();
  ring.put(raw_sample(pattern_bytes(20)));
  const auto records = drain_all(reader);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(payload_of(records[0]), pattern_bytes(20));
}

TEST(RingReader, JoinsTheLargestRecord) {
  FakeRing ring(128 << 10);
  ring.start_at((128 << 10) - 4096);
  RingReader reader = ring.reader();
  ring.put(raw_sample(pattern_bytes(ring::kMaxPayload)));
  const auto records = drain_all(reader);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].size, ring::kMaxRecord);
  EXPECT_EQ(payload_of(records[0]), pattern_bytes(ring::kMaxPayload));
}

TEST(RingReader, JoinsRecordsAtEveryStartInASmallRing) {
  for (uint64_t start = 0; start < 4096; start += 8) {
    FakeRing ring(4096);
    ring.start_at(start);
    RingReader reader = ring.reader();
    ring.put(raw_sample(pattern_bytes(4000, static_cast<uint32_t>(start))));
    const auto records = drain_all(reader);
    ASSERT_EQ(records.size(), 1u) << start;
    EXPECT_TRUE(
        starts_with(payload_of(records[0]), pattern_bytes(4000, static_cast<uint32_t>(start))));
  }
}

TEST(RingReader, HandsOnARecordOfUnknownType) {
  FakeRing ring(4096);
  RingReader reader = ring.reader();
  ring.put(record_bytes(77, Bytes(32)));
  ring.put(raw_sample(pattern_bytes(8)));
  const auto records = drain_all(reader);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].type, 77u);
  EXPECT_EQ(records[0].size, 40u);
  EXPECT_TRUE(starts_with(payload_of(records[1]), pattern_bytes(8)));
  EXPECT_EQ(reader.counts().by_type[ReaderCounts::kTypes - 1], 1u);
}

TEST(RingReader, HandsOnWhatTheSymbolizerNeeds) {
  FakeRing ring(4096);
  RingReader reader = ring.reader();
  const std::vector<uint32_t> types = {ring::kRecordMmap2, ring::kRecordComm, ring::kRecordFork,
                                       ring::kRecordExit, ring::kRecordKsymbol};
  for (const uint32_t type : types) ring.put(record_bytes(type, pattern_bytes(56, type)));
  const auto records = drain_all(reader);
  ASSERT_EQ(records.size(), types.size());
  for (size_t i = 0; i < types.size(); ++i) {
    EXPECT_EQ(records[i].type, types[i]);
    EXPECT_EQ(records[i].body, pattern_bytes(56, types[i]));
    EXPECT_EQ(reader.counts().by_type[types[i]], 1u);
  }
}

TEST(RingReader, CountsThrottlingAndAddsLostSamplesToTheLoss) {
  FakeRing ring(4096);
  RingReader reader = ring.reader();
  Bytes lost_samples;
  append(lost_samples, uint64_t{11});
  ring.put(record_bytes(ring::kRecordThrottle, Bytes(24)));
  ring.put(record_bytes(ring::kRecordUnthrottle, Bytes(24)));
  ring.put(record_bytes(ring::kRecordLostSamples, lost_samples));
  ring.put(lost_record(1, 2));
  EXPECT_EQ(drain_all(reader).size(), 4u);
  EXPECT_EQ(reader.counts().by_type[ring::kRecordThrottle], 1u);
  EXPECT_EQ(reader.counts().by_type[ring::kRecordUnthrottle], 1u);
  EXPECT_EQ(reader.counts().lost, 13u);
}

TEST(RingReader, ReadsTheLossOfALostRecordWithAnIdBlock) {
  FakeRing ring(4096);
  RingReader reader = ring.reader();
  Bytes body;
  append(body, uint64_t{42});
  append(body, uint64_t{7});
  body.resize(32);  // TIME and CPU
  ring.put(record_bytes(ring::kRecordLost, body));
  drain_all(reader);
  EXPECT_EQ(reader.counts().lost, 7u);
}

TEST(RingReader, ReadsAcrossTheWrapOfThePositions) {
  FakeRing ring(4096);
  ring.start_at(0 - uint64_t{64});
  RingReader reader = ring.reader();
  for (uint32_t i = 0; i < 5; ++i) ring.put(raw_sample(pattern_bytes(20, i)));
  const auto records = drain_all(reader);
  ASSERT_EQ(records.size(), 5u);
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(payload_of(records[i]), pattern_bytes(20, i));
  EXPECT_EQ(ring.tail(), 5 * 32 - uint64_t{64});
}

// Positions of 32-bit kernels wrap at 4 GiB. Not supported: the jump is reported and the ring goes
// on at the new head.
TEST(RingReader, ReportsAHeadThatWrapsAt32BitsAndGoesOn) {
  FakeRing ring(4096);
  ring.start_at((uint64_t{1} << 32) - 16);
  RingReader reader = ring.reader();
  ring.put(raw_sample(pattern_bytes(20)));
  ring.set_head(ring.head() & 0xffffffff);
  EXPECT_EQ(drain_all(reader).size(), 0u);
  EXPECT_EQ(reader.counts().corrupt, 1u);
  ring.put(raw_sample(pattern_bytes(20, 2)));
  ASSERT_EQ(drain_all(reader).size(), 1u);
}

TEST(RingReader, ReadsARingThatIsExactlyFull) {
  FakeRing ring(4096);
  RingReader reader = ring.reader();
  for (int i = 0; i < 511; ++i) ring.put(record_bytes(ring::kRecordSample, {}));
  EXPECT_EQ(ring.free_bytes(), 0u);
  EXPECT_EQ(reader.available_bytes(), 4088u);
  EXPECT_EQ(drain_all(reader).size(), 511u);
  EXPECT_EQ(reader.available_bytes(), 0u);
}

// A byte ring as goebpf's own test has it: reads to the edge, at the edge and across it.
TEST(RingReader, FollowsTheTailToTheEdgeAndAcrossIt) {
  FakeRing ring(64);
  RingReader reader = ring.reader();
  std::vector<uint64_t> tails;
  for (const size_t body : {8u, 40u, 8u, 24u, 0u}) {
    ring.put(record_bytes(ring::kRecordSample, pattern_bytes(body, 3)));
    const auto records = drain_all(reader);
    ASSERT_EQ(records.size(), 1u);
    EXPECT_EQ(records[0].body, pattern_bytes(body, 3));
    tails.push_back(ring.tail());
  }
  EXPECT_EQ(tails, (std::vector<uint64_t>{16, 64, 80, 112, 120}));
}

TEST(RingReader, ResumesAtTheTailOfTheReaderBefore) {
  FakeRing ring(4096);
  for (uint32_t i = 0; i < 3; ++i) ring.put(raw_sample(pattern_bytes(20, i)));
  {
    RingReader first = ring.reader();
    drain_all(first, {.max_records = 1});
  }
  RingReader second = ring.reader();
  const auto records = drain_all(second);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(payload_of(records[0]), pattern_bytes(20, 1));
}

TEST(RingReader, RefusesMemoryThatIsNoRing) {
  FakeRing ring(4096);
  RingMemory memory = ring.memory();
  for (const uint64_t size : {0u, 8u, 4095u, 12288u}) {
    memory.data_size = size;
    EXPECT_FALSE(RingReader::create(memory)) << size;
  }
  memory = ring.memory();
  memory.data += 4;
  EXPECT_FALSE(RingReader::create(memory));
  EXPECT_FALSE(RingReader::create({}));
}

// Property: whatever the ring's size, the records' sizes and the moments of draining, the reader
// sees exactly what was written.
TEST(RingReader, GivesBackAMillionRandomRecords) {
  std::mt19937_64 random(20240229);
  uint64_t records = 0;
  while (records < 1'000'000) {
    const uint64_t data_size = uint64_t{4096} << random() % 7;
    FakeRing ring(data_size);
    ring.start_at((random() % data_size) & ~uint64_t{7});
    RingReader reader = ring.reader();
    uint64_t written = 0, read = 0;
    const uint64_t largest = std::min(ring::kMaxPayload, data_size - 8 - ring::kRawPrefix);
    const auto size_of = [&](uint64_t i) {
      const uint64_t x = i * 0x9e3779b97f4a7c15ull >> 20;
      return x % 64 == 0 ? x / 64 % (largest + 1) : x / 64 % 200;
    };
    const auto check = [&](const Record& record) {
      Sample sample;
      ASSERT_EQ(decode_sample({}, record, sample), SampleCheck::kOk);
      const Bytes expected = pattern_bytes(size_of(read), static_cast<uint32_t>(read));
      ASSERT_GE(sample.payload.size(), expected.size());
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), sample.payload.begin())) << read;
      ++read;
    };
    while (written < 50'000) {
      const Bytes bytes =
          raw_sample(pattern_bytes(size_of(written), static_cast<uint32_t>(written)));
      while (ring.free_bytes() < bytes.size())
        reader.drain({.max_records = 1 + random() % 100}, check);
      ring.put(bytes);
      ++written;
      if (random() % 50 == 0) reader.drain({.max_bytes = 1 + random() % 5000}, check);
      if (HasFatalFailure()) return;
    }
    while (reader.drain({}, check) != 0) {
    }
    ASSERT_EQ(read, written);
    ASSERT_EQ(reader.counts().corrupt, 0u);
    records += written;
  }
}

}  // namespace
}  // namespace v0
}  // namespace dwell
