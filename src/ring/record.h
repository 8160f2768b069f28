// A record as the reader hands it out, and what its bytes mean under the attributes of the event
// that wrote it. Pure functions over a borrowed span: every length is checked, nothing is copied,
// any bytes are acceptable input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "ring/layout.h"

namespace dwell {
inline namespace v0 {

// Header by value (read once: the memory may change under us), body as one contiguous borrow.
// `body` starts 8-byte aligned and lives until the batch that gave it moves the tail past it.
struct Record {
  uint32_t type = 0;
  uint16_t misc = 0;
  uint16_t size = 0;  // header and body
  std::span<const std::byte> body;

  bool is_sample() const { return type == ring::kRecordSample; }
};

// The attributes that decide the layout of records.
struct RecordFormat {
  uint64_t sample_type = ring::kSampleRaw;
  uint64_t read_format = 0;
  bool sample_id_all = false;  // other records end with the id block
  bool pad_in_misc = false;    // our rings: header.misc holds the padding, payloads are exact
};

// Fields that a sample and an id block share. A field that the format lacks stays 0.
struct RecordIds {
  uint64_t identifier = 0;  // IDENTIFIER, else ID
  uint64_t stream_id = 0;
  uint64_t time_ns = 0;
  uint32_t pid = 0;  // the process
  uint32_t tid = 0;
  uint32_t cpu = 0;
};

struct Sample {
  RecordIds ids;
  uint64_t ip = 0;
  uint64_t addr = 0;
  uint64_t period = 0;
  std::span<const std::byte> read_values;  // as read_format says
  std::span<const std::byte> callchain;    // u64 each; copy out, 8-byte aligned
  // Starts 4-byte aligned, not 8. From the kernel it ends with up to 7 bytes of padding that may
  // be remains of older records; with pad_in_misc it is exact.
  std::span<const std::byte> payload;
  std::span<const std::byte> rest;  // fields after RAW in ABI order, not decoded
};

enum class SampleCheck {
  kOk,
  kTruncated,  // a field before RAW runs past the record
  kOversize,   // raw_size says more than the record holds: the kernel's answer to payloads > 64 KiB
};

// `record` must be a sample. On failure `sample` holds the fields before the bad one and an empty
// payload.
SampleCheck decode_sample(const RecordFormat& format, const Record& record, Sample& sample);

// The payload of a sample of a RAW-only format, as decode_sample() gives it but inline: for loops
// in which each nanosecond counts. None if the record is oversize.
inline std::optional<std::span<const std::byte>> raw_payload(const Record& record,
                                                             bool pad_in_misc = false);

// The id block at the end of a record that is no sample. None if the format has none or the record
// is too short for it.
std::optional<RecordIds> decode_ids(const RecordFormat& format, const Record& record);

// Bytes of the id block.
size_t id_block_size(const RecordFormat& format);

// Body without the id block; the whole body where there is none.
std::span<const std::byte> body_without_ids(const RecordFormat& format, const Record& record);

// Number of events that a LOST or LOST_SAMPLES record reports. None for any other type and for a
// body that is too short.
std::optional<uint64_t> lost_count(const Record& record);

// Payload as a T: exactly sizeof(T) bytes, whatever padding follows. None if it is shorter.
template <typename T>
std::optional<T> payload_as(const Sample& sample);

// Payload that starts with its own length (a u32, little endian as the machine): the bytes after
// it. None if the length runs past the payload. This is how a program tells the exact length that
// the kernel's padding hides.
std::optional<std::span<const std::byte>> length_prefixed(std::span<const std::byte> payload);

inline std::optional<std::span<const std::byte>> raw_payload(const Record& record,
                                                             bool pad_in_misc) {
  if (record.body.size() < sizeof(uint32_t)) return std::nullopt;
  const uint64_t raw_size =
      __atomic_load_n(reinterpret_cast<const uint32_t*>(record.body.data()), __ATOMIC_RELAXED);
  if (raw_size > record.body.size() - sizeof(uint32_t)) return std::nullopt;
  uint64_t pad = 0;
  if (pad_in_misc) pad = (record.misc & ring::kMiscPadMask) >> ring::kMiscPadShift;
  return record.body.subspan(sizeof(uint32_t), raw_size - (pad < raw_size ? pad : raw_size));
}

template <typename T>
std::optional<T> payload_as(const Sample& sample) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (sample.payload.size() < sizeof(T)) return std::nullopt;
  T value;
  __builtin_memcpy(&value, sample.payload.data(), sizeof value);
  return value;
}

}  // namespace v0
}  // namespace dwell
