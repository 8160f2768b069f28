// Arbitrary bytes and positions in a ring, to the forward and the backward reader and the decoder.
// Byte 0: ring size. Bytes 1-8: tail. Bytes 9-16: head minus tail. Bytes 17-19: sample type.
// Byte 20: read format. Rest: the data area, repeated.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "ring/backward_reader.h"
#include "ring/ring_reader.h"

namespace {

uint64_t sum_of(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  for (const std::byte b : bytes) sum += static_cast<uint64_t>(b);
  return sum;
}

uint64_t touch(const dwell::RecordFormat& format, const dwell::Record& record) {
  dwell::Sample sample;
  uint64_t sum = sum_of(record.body) + dwell::lost_count(record).value_or(0);
  if (record.is_sample()) {
    dwell::decode_sample(format, record, sample);
    sum += sum_of(sample.payload) + sum_of(sample.rest) + sum_of(sample.callchain);
    if (const auto exact = dwell::length_prefixed(sample.payload)) sum += sum_of(*exact);
  } else if (const auto ids = dwell::decode_ids(format, record)) {
    sum += ids->time_ns + sum_of(dwell::body_without_ids(format, record));
  }
  return sum;
}

void require(bool condition) {
  if (!condition) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kPrefix = 21;
  if (size < kPrefix) return 0;
  const uint64_t data_size = uint64_t{16} << data[0] % 14;
  auto meta = std::make_unique<dwell::ring::MetaPage>();
  uint64_t distance = 0;
  std::memcpy(&meta->data_tail, data + 1, 8);
  std::memcpy(&distance, data + 9, 8);
  if (data[0] & 0x80) distance %= data_size + 16;  // mostly believable
  meta->data_head = meta->data_tail + distance;
  dwell::RecordFormat format;
  format.sample_type = data[17] | uint64_t{data[18]} << 8 | uint64_t{data[19]} << 16;
  format.read_format = data[20] & 0x1f;
  format.sample_id_all = (data[20] & 0x20) != 0;
  format.pad_in_misc = (data[20] & 0x40) != 0;
  std::vector<std::byte> area(data_size);
  for (size_t i = 0; size > kPrefix && i < data_size; ++i)
    area[i] = static_cast<std::byte>(data[kPrefix + i % (size - kPrefix)]);

  const dwell::RingMemory memory{meta.get(), area.data(), data_size, false};
  auto reader = dwell::RingReader::create(memory);
  uint64_t sum = 0, records = 0;
  while (const uint64_t n = reader->drain({.max_records = 7},
                                          [&](const dwell::Record& r) { sum += touch(format, r); }))
    records += n;
  require(records <= data_size / 8 + 1);
  require(meta->data_head - reader->position() < 8);
  require(!reader->has_data());

  auto backward = dwell::BackwardReader::create(memory);
  backward->take_snapshot(/*live=*/(data[20] & 0x80) != 0);
  uint64_t bytes = 0;
  while (const dwell::Record* record = backward->next()) {
    sum += touch(format, *record);
    bytes += record->size;
  }
  require(bytes <= data_size);
  volatile uint64_t keep = sum;
  (void)keep;
  return 0;
}
