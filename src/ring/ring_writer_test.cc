#include "ring/ring_writer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "ring/backward_reader.h"
#include "ring/fake_ring.h"
#include "ring/loss_report.h"

namespace dwell {
inline namespace v0 {
namespace {

RingWriter writer_of(FakeRing& ring, const WriterOptions& options = {}) {
  return std::move(*RingWriter::create(ring.memory(), options));
}

std::vector<uint64_t> losses_in(const std::vector<CopiedRecord>& records) {
  std::vector<uint64_t> losses;
  for (const CopiedRecord& r : records)
    if (const auto lost = lost_count({r.type, r.misc, r.size, r.body})) losses.push_back(*lost);
  return losses;
}

TEST(RingWriter, WritesTheKernelsBytesButZeroPadding) {
  for (size_t n = 0; n <= 64; ++n) {
    FakeRing ring(4096);
    RingWriter writer = writer_of(ring, {.exact_length = false});
    ASSERT_EQ(writer.put(pattern_bytes(n)), PutOutcome::kWritten);
    Bytes expected = raw_sample(pattern_bytes(n));
    std::fill(expected.begin() + 12 + static_cast<long>(n), expected.end(), std::byte{0});
    EXPECT_EQ(std::memcmp(ring.data(), expected.data(), expected.size()), 0) << n;
    EXPECT_EQ(ring.head(), expected.size());
  }
}

TEST(RingWriter, KeepsTheExactLength) {
  FakeRing ring(1 << 18);
  RingWriter writer = writer_of(ring);
  RingReader reader = ring.reader();
  std::vector<size_t> sizes;
  for (size_t n = 0; n <= 64; ++n) sizes.push_back(n);
  sizes.push_back(1000), sizes.push_back(ring::kMaxPayload);
  for (const size_t n : sizes) ASSERT_EQ(writer.put(pattern_bytes(n)), PutOutcome::kWritten);
  size_t i = 0;
  reader.drain({.hold = true}, [&](const Record& record) {
    Sample sample;
    ASSERT_EQ(decode_sample({.pad_in_misc = true}, record, sample), SampleCheck::kOk);
    EXPECT_EQ(Bytes(sample.payload.begin(), sample.payload.end()), pattern_bytes(sizes[i++]));
  });
  EXPECT_EQ(i, sizes.size());
}

TEST(RingWriter, AppendsTheCaptureRightBehindTheData) {
  FakeRing ring(4096);
  RingWriter writer = writer_of(ring);
  RingReader reader = ring.reader();
  ASSERT_EQ(writer.put(pattern_bytes(5, 1), pattern_bytes(10, 2)), PutOutcome::kWritten);
  Bytes expected = pattern_bytes(5, 1);
  const Bytes capture = pattern_bytes(10, 2);
  expected.insert(expected.end(), capture.begin(), capture.end());
  EXPECT_TRUE(starts_with(payload_of(drain_all(reader).at(0)), expected));
}

TEST(RingWriter, RefusesMoreThan64KiBAndLeavesTheRingAlone) {
  FakeRing ring(1 << 18);
  RingWriter writer = writer_of(ring);
  const Bytes bytes(ring::kMaxPayload + 1);
  EXPECT_EQ(writer.put(bytes), PutOutcome::kTooBig);
  EXPECT_EQ(writer.put(std::span(bytes).first(65000), std::span(bytes).first(517)),
            PutOutcome::kTooBig);
  EXPECT_EQ(ring.head(), 0u);
  EXPECT_EQ(ring.meta().extension.drop_too_big, 2u);
  EXPECT_EQ(ring.meta().extension.lost_total, 0u);
  EXPECT_EQ(writer.put(std::span(bytes).first(ring::kMaxPayload)), PutOutcome::kWritten);
}

TEST(RingWriter, FillsTheRingUpToOneCell) {
  FakeRing ring(4096);
  RingWriter writer = writer_of(ring);
  for (int i = 0; i < 255; ++i) ASSERT_EQ(writer.put({}), PutOutcome::kWritten);
  EXPECT_EQ(writer.free_bytes(), 8u);
  EXPECT_EQ(writer.put({}), PutOutcome::kFull);
  EXPECT_EQ(writer.pending_loss(), 1u);
}

TEST(RingWriter, CountsARecordLargerThanTheRing) {
  FakeRing ring(4096);
  RingWriter writer = writer_of(ring);
  EXPECT_EQ(writer.put(Bytes(4088 - 12 + 1)), PutOutcome::kFull);
  EXPECT_EQ(ring.meta().extension.lost_total, 1u);
}

TEST(RingWriter, TellsALossBeforeTheNextSample) {
  FakeRing ring(4096);
  RingWriter writer = writer_of(ring, {.lost_id = 5});
  RingReader reader = ring.reader();
  for (int i = 0; i < 21; ++i) ASSERT_EQ(writer.put(Bytes(180)), PutOutcome::kWritten);
  EXPECT_EQ(writer.put(Bytes(180)), PutOutcome::kFull);
  EXPECT_EQ(drain_all(reader).size(), 21u);
  ASSERT_EQ(writer.put(Bytes(5)), PutOutcome::kWritten);
  const auto records = drain_all(reader);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].type, ring::kRecordLost);
  EXPECT_EQ(losses_in(records), std::vector<uint64_t>{1});
  EXPECT_EQ(writer.pending_loss(), 0u);
  ASSERT_EQ(writer.put(Bytes(5)), PutOutcome::kWritten);
  EXPECT_EQ(drain_all(reader).size(), 1u) << "told once";
}

TEST(RingWriter, IsNotWedgedByALossThatFitsWithNoSample) {
  FakeRing ring(4096);
  RingWriter writer = writer_of(ring);
  RingReader reader = ring.reader();
  const Bytes large(4088 - 12);  // alone in the ring
  ASSERT_EQ(writer.put(large), PutOutcome::kWritten);
  ASSERT_EQ(writer.put(large), PutOutcome::kFull);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(drain_all(reader).size(), 1u);
    ASSERT_EQ(writer.put(large), PutOutcome::kWritten) << "the kernel's ring would be stuck";
    EXPECT_EQ(writer.pending_loss(), 1u);
  }
  drain_all(reader);
  ASSERT_EQ(writer.put(Bytes(8)), PutOutcome::kWritten);
  EXPECT_EQ(losses_in(drain_all(reader)), std::vector<uint64_t>{1});
}

TEST(RingWriter, TakesAnImpossibleTailForAFullRing) {
  FakeRing ring(4096);
  ring.start_at(8192);
  RingWriter writer = writer_of(ring);
  for (const uint64_t tail : {uint64_t{8200}, 8192 - uint64_t{8192}, uint64_t{8191 - 4096},
                              uint64_t{12345678}, UINT64_MAX}) {
    ring.meta().data_tail = tail;
    const uint64_t lost = ring.meta().extension.lost_total;
    EXPECT_EQ(writer.put(Bytes(8)), PutOutcome::kFull) << tail;
    EXPECT_EQ(ring.meta().extension.lost_total, lost + 1);
    EXPECT_EQ(ring.head(), 8192u);
  }
  ring.meta().data_tail = 8192;
  EXPECT_EQ(writer.put(Bytes(8)), PutOutcome::kWritten);
}

TEST(RingWriter, OverwritesTheOldestInABackwardRing) {
  FakeRing ring(4096);
  RingWriter writer = writer_of(ring, {.backward = true});
  auto reader = BackwardReader::create(ring.memory());
  for (uint64_t id = 1; id <= 1000; ++id) {
    Bytes payload(8 + id % 50);
    std::memcpy(payload.data(), &id, sizeof id);
    ASSERT_EQ(writer.put(payload), PutOutcome::kWritten);
  }
  reader->take_snapshot();
  uint64_t expected = 1000;
  while (const Record* record = reader->next()) {
    Sample sample;
    ASSERT_EQ(decode_sample({.pad_in_misc = true}, *record, sample), SampleCheck::kOk);
    ASSERT_EQ(payload_as<uint64_t>(sample), expected);
    ASSERT_EQ(sample.payload.size(), 8 + expected % 50);
    --expected;
  }
  EXPECT_LT(expected, 950u);
  EXPECT_EQ(ring.meta().extension.lost_total, 0u);
}

// The state that a producer leaves which is killed after each of the stores of a report.
TEST(LossReport, ChangesNothingUntilTheHeadIsPublished) {
  for (int killed_after = 0; killed_after <= 4; ++killed_after) {
    FakeRing ring(4096);
    ring.start_at(512);
    RingWriter writer = writer_of(ring);
    RingReader reader = ring.reader();
    ring::MetaExtension& extension = ring.meta().extension;
    extension.lost_total = 30;
    extension.report_head = 256, extension.report_new = 10, extension.report_old = 3;
    ASSERT_EQ(reported_loss(extension, 512), 10u);
    if (killed_after >= 1) extension.report_old = 10;
    if (killed_after >= 2) extension.report_new = 10;
    if (killed_after >= 3) extension.report_head = 512 + 24 + 32;
    if (killed_after >= 4) extension.report_new = 30;
    EXPECT_EQ(reported_loss(extension, 512), 10u) << killed_after;
    // The next producer tells the whole of it, with a record of another size.
    ASSERT_EQ(writer.put(Bytes(200)), PutOutcome::kWritten);
    EXPECT_EQ(losses_in(drain_all(reader)), std::vector<uint64_t>{20}) << killed_after;
    EXPECT_EQ(writer.pending_loss(), 0u);
  }
}

TEST(LossReport, IsWithdrawnWhenASampleMustGoAlone) {
  FakeRing ring(4096);
  RingWriter writer = writer_of(ring);
  RingReader reader = ring.reader();
  ring::MetaExtension& extension = ring.meta().extension;
  extension.lost_total = 5;
  // A report prepared for a small record and never published.
  prepare_loss_report(extension, 0, 5, 24 + 16);
  ASSERT_EQ(writer.put(Bytes(4088 - 12)), PutOutcome::kWritten);
  EXPECT_EQ(writer.pending_loss(), 5u) << "head has passed the abandoned report";
  drain_all(reader);
  ASSERT_EQ(writer.put(Bytes(8)), PutOutcome::kWritten);
  EXPECT_EQ(losses_in(drain_all(reader)), std::vector<uint64_t>{5});
}

// Writer and reader against each other, with random sizes, stops and losses: everything written is
// read in order, and what was refused is what LOST records and the pending count say.
TEST(RingWriter, LosesNothingThatItDoesNotCount) {
  std::mt19937_64 random(99);
  for (int round = 0; round < 200; ++round) {
    FakeRing ring(uint64_t{4096} << random() % 4);
    ring.start_at(random() & ~uint64_t{7});
    const uint64_t start = ring.head();
    ring.meta().extension.report_head = start;
    RingWriter writer = writer_of(ring);
    RingReader reader = ring.reader();
    uint64_t written = 0, refused = 0, read = 0, told = 0;
    for (int step = 0; step < 3000; ++step) {
      Bytes payload(8 + random() % (random() % 20 == 0 ? 8000 : 100));
      std::memcpy(payload.data(), &written, sizeof written);
      if (writer.put(payload) == PutOutcome::kWritten)
        ++written;
      else
        ++refused;
      if (random() % 40 != 0) continue;
      reader.drain({.max_records = random() % 50}, [&](const Record& record) {
        if (const auto lost = lost_count(record)) {
          told += *lost;
          return;
        }
        Sample sample;
        ASSERT_EQ(decode_sample({.pad_in_misc = true}, record, sample), SampleCheck::kOk);
        ASSERT_EQ(payload_as<uint64_t>(sample), read++);
      });
    }
    reader.drain({}, [&](const Record& record) {
      told += lost_count(record).value_or(0);
      read += record.is_sample();
    });
    ASSERT_EQ(read, written);
    ASSERT_EQ(told + writer.pending_loss(), refused);
    ASSERT_EQ(ring.meta().extension.lost_total, refused);
    ASSERT_EQ(reader.counts().corrupt, 0u);
  }
}

TEST(RingWriter, HandsOverToAReaderOnAnotherThread) {
  FakeRing ring(8192);
  RingWriter writer = writer_of(ring);
  RingReader reader = ring.reader();
  constexpr uint64_t kOutputs = 300'000;
  std::atomic<bool> done = false;
  uint64_t refused = 0;
  std::thread producer([&] {
    for (uint64_t i = 0; i < kOutputs; ++i) {
      Bytes payload(8 + i % 50, static_cast<std::byte>(i));
      std::memcpy(payload.data(), &i, sizeof i);
      if (writer.put(payload) == PutOutcome::kFull) ++refused;
    }
    done = true;
  });
  uint64_t read = 0, told = 0, last = 0;
  bool finished = false;
  while (!finished) {
    finished = done;
    reader.drain({}, [&](const Record& record) {
      if (const auto lost = lost_count(record)) {
        told += *lost;
        return;
      }
      Sample sample;
      ASSERT_EQ(decode_sample({.pad_in_misc = true}, record, sample), SampleCheck::kOk);
      const uint64_t id = *payload_as<uint64_t>(sample);
      ASSERT_TRUE(read == 0 || id > last);
      ASSERT_EQ(sample.payload.size(), 8 + id % 50);
      last = id;
      ++read;
    });
  }
  producer.join();
  EXPECT_EQ(read + refused, kOutputs);
  EXPECT_EQ(told + writer.pending_loss(), refused);
}

}  // namespace
}  // namespace v0
}  // namespace dwell
