#include "ring/backward_reader.h"

#include <algorithm>
#include <cstring>

namespace dwell {
inline namespace v0 {
namespace {

// Copies words that a live writer may be overwriting: what was overwritten is cut off afterwards,
// as in a seqlock. The writer's stores are atomic as well (RingWriter), or made in assembly.
void copy_racing(std::byte* to, const std::byte* from, uint64_t size) {
  for (uint64_t i = 0; i < size; i += 8) {
    const uint64_t word =
        __atomic_load_n(reinterpret_cast<const uint64_t*>(from + i), __ATOMIC_RELAXED);
    std::memcpy(to + i, &word, sizeof word);
  }
}

}  // namespace

Result<BackwardReader> BackwardReader::create(const RingMemory& memory) {
  DWELL_TRY(RingReader::create(memory));  // same demands on the memory
  return BackwardReader(memory);
}

BackwardReader::BackwardReader(const RingMemory& memory)
    : memory_(memory), copy_(std::make_unique_for_overwrite<std::byte[]>(memory.data_size)) {}

void BackwardReader::take_snapshot(bool live) {
  at_ = torn_bytes_ = 0;
  corrupt_ = false;
  // Pairs with the writer's release of head: the records from head on are complete.
  const uint64_t head = __atomic_load_n(&memory_.meta->data_head, __ATOMIC_ACQUIRE);
  // Positions run down from 0, so that -head is all that was ever written.
  limit_ = std::min(memory_.data_size, 0 - head);
  if (head % ring::kRecordAlign != 0) {
    corrupt_ = limit_ != 0;
    limit_ = 0;
  }
  const uint64_t offset = head & (memory_.data_size - 1);
  const uint64_t front = std::min(limit_, memory_.data_size - offset);
  copy_racing(copy_.get(), memory_.data + offset, front);
  copy_racing(copy_.get() + front, memory_.data, limit_ - front);
  if (!live) return;
  // Pairs with the writer's fence: the copy is over before head is read again. A record in flight
  // below that head may have reached as far as the largest record that any writer has announced.
  __atomic_thread_fence(__ATOMIC_ACQUIRE);
  const uint64_t later = __atomic_load_n(&memory_.meta->data_head, __ATOMIC_RELAXED);
  const uint64_t in_flight = std::min(
      __atomic_load_n(&memory_.meta->extension.largest_record, __ATOMIC_RELAXED), ring::kMaxRecord);
  const uint64_t overwritten = head - later + in_flight;
  const uint64_t intact =
      overwritten < memory_.data_size ? memory_.data_size - overwritten : uint64_t{0};
  limit_ = std::min(limit_, intact);
}

const Record* BackwardReader::next() {
  if (limit_ - at_ < sizeof(ring::RecordHeader)) return nullptr;
  ring::RecordHeader header;
  std::memcpy(&header, copy_.get() + at_, sizeof header);
  const uint64_t left = limit_ - at_;
  if (header.size < sizeof header || header.size % ring::kRecordAlign != 0) {
    corrupt_ = true;
    limit_ = at_;
    return nullptr;
  }
  if (header.size > left) {
    torn_bytes_ = left;
    limit_ = at_;
    return nullptr;
  }
  record_.type = header.type;
  record_.misc = header.misc;
  record_.size = header.size;
  record_.body = {copy_.get() + at_ + sizeof header, header.size - sizeof header};
  at_ += header.size;
  return &record_;
}

}  // namespace v0
}  // namespace dwell
