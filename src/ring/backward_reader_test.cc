#include "ring/backward_reader.h"

#include <gtest/gtest.h>

#include "ring/fake_ring.h"

namespace dwell {
inline namespace v0 {
namespace {

Bytes numbered(uint64_t id, size_t payload) {
  Bytes bytes;
  append(bytes, id);
  bytes.resize(std::max<size_t>(payload, 8), static_cast<std::byte>(id));
  return raw_sample(bytes);
}

std::vector<uint64_t> ids_of(BackwardReader& reader) {
  std::vector<uint64_t> ids;
  while (const Record* record = reader.next()) {
    Sample sample;
    if (decode_sample({}, *record, sample) != SampleCheck::kOk) break;
    ids.push_back(*payload_as<uint64_t>(sample));
    for (size_t i = 8; i < sample.payload.size() - 7; ++i)
      if (sample.payload[i] != static_cast<std::byte>(ids.back())) ids.back() = UINT64_MAX;
  }
  return ids;
}

// n, n-1, n-2 ... as many as were read.
void expect_descending_from(uint64_t newest, const std::vector<uint64_t>& ids) {
  for (size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], newest - i);
}

TEST(BackwardReader, FindsNothingInAnEmptyRing) {
  FakeRing ring(4096);
  auto reader = BackwardReader::create(ring.memory());
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->next(), nullptr) << "no snapshot yet";
  reader->take_snapshot();
  EXPECT_EQ(reader->next(), nullptr);
  EXPECT_FALSE(reader->corrupt());
}

TEST(BackwardReader, ReadsNewestFirstBeforeTheFirstLap) {
  FakeRing ring(4096);
  auto reader = BackwardReader::create(ring.memory());
  for (uint64_t id = 1; id <= 10; ++id) ring.put_backward(numbered(id, 20));
  reader->take_snapshot();
  const auto ids = ids_of(*reader);
  ASSERT_EQ(ids.size(), 10u);
  expect_descending_from(10, ids);
  EXPECT_EQ(reader->torn_bytes(), 0u);
}

TEST(BackwardReader, DropsTheTornRecordAfterALap) {
  FakeRing ring(4096);
  auto reader = BackwardReader::create(ring.memory());
  for (uint64_t id = 1; id <= 1000; ++id) ring.put_backward(numbered(id, 8 + id % 90));
  reader->take_snapshot();
  const auto ids = ids_of(*reader);
  ASSERT_GT(ids.size(), 30u);
  expect_descending_from(1000, ids);
  EXPECT_GT(reader->torn_bytes(), 0u);
  EXPECT_FALSE(reader->corrupt());
}

TEST(BackwardReader, ReadsOneRingAtMostWhenTheHeadIsOnALap) {
  FakeRing ring(4096);
  auto reader = BackwardReader::create(ring.memory());
  for (uint64_t id = 1; id <= 256; ++id) ring.put_backward(numbered(id, 20));  // 32 bytes: 2 laps
  ASSERT_EQ(ring.head() % 4096, 0u);
  reader->take_snapshot();
  const auto ids = ids_of(*reader);
  EXPECT_EQ(ids.size(), 128u);
  expect_descending_from(256, ids);
}

TEST(BackwardReader, ReadsEverySizeOfRingAndRecord) {
  for (const uint64_t data_size : {4096u, 8192u, 32768u})
    for (size_t payload = 8; payload < 1000; payload += 37) {
      FakeRing ring(data_size);
      auto reader = BackwardReader::create(ring.memory());
      for (uint64_t id = 1; id <= 5000; ++id) ring.put_backward(numbered(id, payload));
      reader->take_snapshot();
      const auto ids = ids_of(*reader);
      EXPECT_EQ(ids.size(), data_size / numbered(1, payload).size());
      expect_descending_from(5000, ids);
    }
}

TEST(BackwardReader, CutsOffWhatALiveWriterMayHaveOverwritten) {
  FakeRing ring(4096);
  auto reader = BackwardReader::create(ring.memory());
  ring.meta().extension.largest_record = 64;
  for (uint64_t id = 1; id <= 1000; ++id) ring.put_backward(numbered(id, 20));
  reader->take_snapshot(/*live=*/true);
  const auto ids = ids_of(*reader);
  EXPECT_EQ(ids.size(), (4096 - 64) / 32u);
  expect_descending_from(1000, ids);
}

TEST(BackwardReader, StopsAtBytesThatAreNoRecord) {
  FakeRing ring(4096);
  auto reader = BackwardReader::create(ring.memory());
  for (uint64_t id = 1; id <= 10; ++id) ring.put_backward(numbered(id, 20));
  ring.put_at(ring.head() + 3 * 32, Bytes(8));  // size 0
  reader->take_snapshot();
  EXPECT_EQ(ids_of(*reader).size(), 3u);
  EXPECT_TRUE(reader->corrupt());
  ring.set_head(ring.head() + 3);
  reader->take_snapshot();
  EXPECT_EQ(reader->next(), nullptr);
  EXPECT_TRUE(reader->corrupt());
}

}  // namespace
}  // namespace v0
}  // namespace dwell
