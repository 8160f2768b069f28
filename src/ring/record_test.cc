#include "ring/record.h"

#include <gtest/gtest.h>

#include "ring/fake_ring.h"

namespace dwell {
inline namespace v0 {
namespace {

Record view(const Bytes& bytes) {
  ring::RecordHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return {header.type, header.misc, header.size, std::span(bytes).subspan(8)};
}

TEST(DecodeSample, ReadsEveryFieldInAbiOrder) {
  Bytes body;
  append(body, uint64_t{0x11});                              // IDENTIFIER
  append(body, uint64_t{0x401000});                          // IP
  append(body, uint32_t{100}), append(body, uint32_t{101});  // TID
  append(body, uint64_t{123456789});                         // TIME
  append(body, uint64_t{0xdead});                            // ADDR
  append(body, uint64_t{0x11});                              // ID
  append(body, uint64_t{0x22});                              // STREAM_ID
  append(body, uint32_t{3}), append(body, uint32_t{0});      // CPU
  append(body, uint64_t{7});                                 // PERIOD
  append(body, uint64_t{1}), append(body, uint64_t{2});      // READ: value, lost
  append(body, uint64_t{2}), append(body, uint64_t{0xa}), append(body, uint64_t{0xb});  // CALLCHAIN
  append(body, uint32_t{4}), append(body, uint32_t{0xfeed});                            // RAW
  const Bytes bytes = record_bytes(ring::kRecordSample, body);
  const RecordFormat format{.sample_type = 0x107ff & ~0u, .read_format = ring::kReadLost};

  Sample sample;
  ASSERT_EQ(decode_sample(format, view(bytes), sample), SampleCheck::kOk);
  EXPECT_EQ(sample.ids.identifier, 0x11u);
  EXPECT_EQ(sample.ip, 0x401000u);
  EXPECT_EQ(sample.ids.pid, 100u);
  EXPECT_EQ(sample.ids.tid, 101u);
  EXPECT_EQ(sample.ids.time_ns, 123456789u);
  EXPECT_EQ(sample.addr, 0xdeadu);
  EXPECT_EQ(sample.ids.stream_id, 0x22u);
  EXPECT_EQ(sample.ids.cpu, 3u);
  EXPECT_EQ(sample.period, 7u);
  EXPECT_EQ(sample.read_values.size(), 16u);
  EXPECT_EQ(sample.callchain.size(), 16u);
  EXPECT_EQ(payload_as<uint32_t>(sample), 0xfeedu);
}

TEST(DecodeSample, ReadsIdentifierTidTimeCpuRaw) {
  Bytes body;
  append(body, uint64_t{9});
  append(body, uint32_t{1}), append(body, uint32_t{2});
  append(body, uint64_t{3});
  append(body, uint32_t{4}), append(body, uint32_t{0});
  append(body, uint32_t{12});
  const Bytes payload = pattern_bytes(12);
  body.insert(body.end(), payload.begin(), payload.end());
  const Bytes bytes = record_bytes(ring::kRecordSample, body);
  const RecordFormat format{.sample_type = ring::kSampleIdentifier | ring::kSampleTid |
                                           ring::kSampleTime | ring::kSampleCpu | ring::kSampleRaw};
  Sample sample;
  ASSERT_EQ(decode_sample(format, view(bytes), sample), SampleCheck::kOk);
  EXPECT_EQ(sample.ids.identifier, 9u);
  EXPECT_EQ(sample.ids.pid, 1u);
  EXPECT_EQ(sample.ids.tid, 2u);
  EXPECT_EQ(sample.ids.time_ns, 3u);
  EXPECT_EQ(sample.ids.cpu, 4u);
  EXPECT_TRUE(
      std::equal(payload.begin(), payload.end(), sample.payload.begin(), sample.payload.end()));
}

TEST(DecodeSample, RefusesRawSizeLargerThanTheRecord) {
  for (const uint32_t raw_size : {13u, 65540u, 0xffffffffu}) {
    Bytes body;
    append(body, raw_size);
    body.resize(16);  // 12 bytes of payload
    const Bytes bytes = record_bytes(ring::kRecordSample, body);
    Sample sample;
    EXPECT_EQ(decode_sample({}, view(bytes), sample), SampleCheck::kOversize) << raw_size;
    EXPECT_TRUE(sample.payload.empty());
  }
}

TEST(DecodeSample, AcceptsRawSizeZero) {
  Bytes body;
  append(body, uint32_t{0});
  const Bytes bytes = record_bytes(ring::kRecordSample, body);
  ASSERT_EQ(bytes.size(), 16u);
  Sample sample;
  EXPECT_EQ(decode_sample({}, view(bytes), sample), SampleCheck::kOk);
  EXPECT_TRUE(sample.payload.empty());
}

TEST(DecodeSample, AcceptsASampleWithoutBody) {
  const Bytes bytes = record_bytes(ring::kRecordSample, {});
  Sample sample;
  EXPECT_EQ(decode_sample({.sample_type = 0}, view(bytes), sample), SampleCheck::kOk);
  EXPECT_TRUE(sample.payload.empty());
  EXPECT_EQ(decode_sample({}, view(bytes), sample), SampleCheck::kOversize)
      << "where RAW is due, only a size that wrapped at 64 KiB leaves it out";
}

TEST(DecodeSample, StopsAtEveryPlaceWhereTheRecordIsCutShort) {
  const RecordFormat format{.sample_type = 0x107ff, .read_format = ring::kReadGroup};
  Bytes body(19 * 8);  // all fields, an empty group, an empty callchain
  for (size_t size = 0; size + 8 <= body.size(); size += 8) {
    const Bytes bytes = record_bytes(ring::kRecordSample, Bytes(body.begin(), body.begin() + size));
    Sample sample;
    const SampleCheck check = decode_sample(format, view(bytes), sample);
    EXPECT_EQ(check, size < 12 * 8 ? SampleCheck::kTruncated : SampleCheck::kOk) << size;
  }
}

TEST(DecodeSample, RefusesCountsThatRunPastTheRecord) {
  for (const uint64_t count : {uint64_t{3}, uint64_t{1} << 61, UINT64_MAX}) {
    Bytes body;
    append(body, count);
    body.resize(24);
    const Bytes bytes = record_bytes(ring::kRecordSample, body);
    Sample sample;
    EXPECT_EQ(decode_sample({.sample_type = ring::kSampleCallchain}, view(bytes), sample),
              SampleCheck::kTruncated);
    EXPECT_EQ(decode_sample({.sample_type = ring::kSampleRead, .read_format = ring::kReadGroup},
                            view(bytes), sample),
              SampleCheck::kTruncated);
  }
}

TEST(DecodeIds, ReadsTheBlockAtTheEndOfOtherRecords) {
  Bytes body;
  append(body, uint64_t{42});  // id
  append(body, uint64_t{7});   // lost
  append(body, uint32_t{100}), append(body, uint32_t{101});
  append(body, uint64_t{555});
  append(body, uint32_t{1}), append(body, uint32_t{0});
  append(body, uint64_t{99});
  const Bytes bytes = record_bytes(ring::kRecordLost, body);
  const RecordFormat format{.sample_type = ring::kSampleTid | ring::kSampleTime | ring::kSampleCpu |
                                           ring::kSampleIdentifier | ring::kSampleRaw,
                            .sample_id_all = true};
  const auto ids = decode_ids(format, view(bytes));
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids->pid, 100u);
  EXPECT_EQ(ids->tid, 101u);
  EXPECT_EQ(ids->time_ns, 555u);
  EXPECT_EQ(ids->cpu, 1u);
  EXPECT_EQ(ids->identifier, 99u);
  EXPECT_EQ(lost_count(view(bytes)), 7u);
  EXPECT_EQ(body_without_ids(format, view(bytes)).size(), 16u);
}

TEST(DecodeIds, HasNoneWhereTheRecordIsTooShortOrASample) {
  const RecordFormat format{.sample_type = ring::kSampleTime, .sample_id_all = true};
  EXPECT_FALSE(decode_ids(format, view(record_bytes(ring::kRecordComm, {}))));
  EXPECT_FALSE(decode_ids(format, view(record_bytes(ring::kRecordSample, Bytes(16)))));
  EXPECT_FALSE(decode_ids({}, view(record_bytes(ring::kRecordComm, Bytes(16)))));
}

TEST(LostCount, ReadsTheCountAndNotTheId) {
  EXPECT_EQ(lost_count(view(lost_record(13576517, 3))), 3u);
  Bytes body;
  append(body, uint64_t{5});
  EXPECT_EQ(lost_count(view(record_bytes(ring::kRecordLostSamples, body))), 5u);
  EXPECT_FALSE(lost_count(view(record_bytes(ring::kRecordLost, body)))) << "body too short";
  EXPECT_FALSE(lost_count(view(raw_sample(Bytes(16)))));
}

TEST(Payload, GivesTypesTheirOwnSizeWhateverThePadding) {
  struct Event {
    uint64_t a;
    uint32_t b;
  } __attribute__((packed));
  const Bytes bytes = raw_sample(pattern_bytes(sizeof(Event)));
  Sample sample;
  ASSERT_EQ(decode_sample({}, view(bytes), sample), SampleCheck::kOk);
  EXPECT_TRUE(payload_as<Event>(sample));
  EXPECT_FALSE((payload_as<std::array<char, 40>>(sample))) << "shorter than the type";
}

TEST(Payload, IsExactWhereTheRingTellsItsPadding) {
  for (uint16_t n = 5; n <= 12; ++n) {
    Bytes bytes = raw_sample(Bytes(n));
    const uint16_t misc = static_cast<uint16_t>((12 - n) << ring::kMiscPadShift);
    std::memcpy(&bytes[4], &misc, sizeof misc);
    Sample sample;
    ASSERT_EQ(decode_sample({.pad_in_misc = true}, view(bytes), sample), SampleCheck::kOk);
    EXPECT_EQ(sample.payload.size(), n);
    ASSERT_EQ(decode_sample({}, view(bytes), sample), SampleCheck::kOk);
    EXPECT_EQ(sample.payload.size(), 12u) << "a foreign reader ignores the bits";
  }
}

TEST(Payload, TakesItsLengthFromItsFirstWord) {
  Bytes payload;
  append(payload, uint32_t{3});
  payload.resize(12, std::byte{7});
  EXPECT_EQ(length_prefixed(payload)->size(), 3u);
  payload[0] = std::byte{8};
  EXPECT_EQ(length_prefixed(payload)->size(), 8u);
  payload[0] = std::byte{9};
  EXPECT_FALSE(length_prefixed(payload));
  EXPECT_FALSE(length_prefixed(std::span(payload).first(3)));
}

}  // namespace
}  // namespace v0
}  // namespace dwell
