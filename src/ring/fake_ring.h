// For tests: a ring in plain memory, and the bytes of records built field by field, independently
// of RingWriter. The data area ends where its allocation ends, so that AddressSanitizer sees a read
// one byte past it.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "ring/ring_reader.h"

namespace dwell {
inline namespace v0 {

using Bytes = std::vector<std::byte>;

// `size` bytes that differ from place to place and from seed to seed.
inline Bytes pattern_bytes(size_t size, uint32_t seed = 1) {
  Bytes bytes(size);
  uint32_t x = seed * 2654435761u + 12345;
  for (std::byte& b : bytes) {
    x = x * 1664525u + 1013904223u;
    b = static_cast<std::byte>(x >> 24);
  }
  return bytes;
}

template <typename T>
void append(Bytes& bytes, T value) {
  bytes.resize(bytes.size() + sizeof value);
  std::memcpy(bytes.data() + bytes.size() - sizeof value, &value, sizeof value);
}

// A record with this body, padded with 0xab as a ring that was lapped would be.
inline Bytes record_bytes(uint32_t type, const Bytes& body, uint16_t misc = 0) {
  Bytes bytes;
  const size_t size = (8 + body.size() + 7) / 8 * 8;
  append(bytes, type);
  append(bytes, misc);
  append(bytes, static_cast<uint16_t>(size));
  bytes.insert(bytes.end(), body.begin(), body.end());
  bytes.resize(size, std::byte{0xab});
  return bytes;
}

// A RAW sample as the kernel writes it: raw_size includes the padding.
inline Bytes raw_sample(const Bytes& payload) {
  Bytes body;
  append(body, static_cast<uint32_t>((payload.size() + 4 + 7) / 8 * 8 - 4));
  body.insert(body.end(), payload.begin(), payload.end());
  return record_bytes(ring::kRecordSample, body, ring::kMiscKernel);
}

inline Bytes lost_record(uint64_t id, uint64_t lost) {
  Bytes body;
  append(body, id);
  append(body, lost);
  return record_bytes(ring::kRecordLost, body);
}

class FakeRing {
 public:
  explicit FakeRing(uint64_t data_size)
      : meta_(std::make_unique<ring::MetaPage>()), data_(data_size, std::byte{0xcc}) {}

  RingMemory memory() { return {meta_.get(), data_.data(), data_.size(), false}; }
  RingReader reader() { return std::move(*RingReader::create(memory())); }

  uint64_t head() const { return __atomic_load_n(&meta_->data_head, __ATOMIC_ACQUIRE); }
  uint64_t tail() const { return __atomic_load_n(&meta_->data_tail, __ATOMIC_ACQUIRE); }
  uint64_t free_bytes() const { return ring::usable_bytes(data_.size()) - (head() - tail()); }

  // Both positions, as if the ring had been in use for long.
  void start_at(uint64_t position) { meta_->data_head = meta_->data_tail = position; }
  void set_head(uint64_t head) { __atomic_store_n(&meta_->data_head, head, __ATOMIC_RELEASE); }

  void put_at(uint64_t position, const Bytes& bytes) {
    for (size_t i = 0; i < bytes.size(); ++i) data_[(position + i) & (data_.size() - 1)] = bytes[i];
  }
  // Appends at the head without asking for room.
  void put(const Bytes& bytes) {
    put_at(head(), bytes);
    set_head(head() + bytes.size());
  }
  // Backward writer: overwrites the oldest.
  void put_backward(const Bytes& bytes) {
    put_at(head() - bytes.size(), bytes);
    set_head(head() - bytes.size());
  }

  std::byte* data() { return data_.data(); }
  ring::MetaPage& meta() { return *meta_; }

 private:
  std::unique_ptr<ring::MetaPage> meta_;
  std::vector<std::byte> data_;
};

// Copies of the records of one batch, so that they outlive it.
struct CopiedRecord {
  uint32_t type;
  uint16_t misc;
  uint16_t size;
  Bytes body;
};

inline std::vector<CopiedRecord> drain_all(RingReader& reader, const Budget& budget = {}) {
  std::vector<CopiedRecord> records;
  reader.drain(budget, [&](const Record& r) {
    records.push_back({r.type, r.misc, r.size, Bytes(r.body.begin(), r.body.end())});
  });
  return records;
}

// Payload of a RAW-only sample.
inline Bytes payload_of(const CopiedRecord& copied) {
  Sample sample;
  const Record record{copied.type, copied.misc, copied.size, copied.body};
  if (decode_sample({}, record, sample) != SampleCheck::kOk) return {};
  return Bytes(sample.payload.begin(), sample.payload.end());
}

inline bool starts_with(const Bytes& bytes, const Bytes& front) {
  return bytes.size() >= front.size() && std::equal(front.begin(), front.end(), bytes.begin());
}

}  // namespace v0
}  // namespace dwell
