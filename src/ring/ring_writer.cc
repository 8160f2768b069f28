#include "ring/ring_writer.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ring/loss_report.h"
#include "ring/placement.h"

namespace dwell {
inline namespace v0 {

LostBytes lost_bytes(uint64_t id, uint64_t lost) {
  return {ring::kRecordLost | ring::kLostRecordSize << 48, id, lost};
}

Result<RingWriter> RingWriter::create(const RingMemory& memory, const WriterOptions& options) {
  DWELL_TRY(RingReader::create(memory));  // same demands on the memory
  return RingWriter(memory, options);
}

PutOutcome RingWriter::put(std::span<const std::byte> data, std::span<const std::byte> capture) {
  // Each is checked alone so that their sum cannot overflow.
  if (data.size() > ring::kMaxPayload || capture.size() > ring::kMaxPayload ||
      data.size() + capture.size() > ring::kMaxPayload) {
    __atomic_fetch_add(&memory_.meta->extension.drop_too_big, 1, __ATOMIC_RELAXED);
    return PutOutcome::kTooBig;
  }
  const SamplePlan plan = plan_sample(data.size() + capture.size(), options_.exact_length);
  if (plan.record_bytes > ring::usable_bytes(memory_.data_size)) {
    count_lost();
    return PutOutcome::kFull;
  }
  if (!options_.backward) return put_forward(plan, data, capture);
  put_backward(plan, data, capture);
  return PutOutcome::kWritten;
}

PutOutcome RingWriter::put_forward(const SamplePlan& plan, std::span<const std::byte> data,
                                   std::span<const std::byte> capture) {
  ring::MetaExtension& extension = memory_.meta->extension;
  const Placement p = place_sample(*memory_.meta, memory_.data_size, plan.record_bytes);
  switch (p.kind) {
    case Placement::Kind::kFull:
      count_lost();
      return PutOutcome::kFull;
    case Placement::Kind::kPlain:
      break;
    case Placement::Kind::kWithLost: {
      const LostBytes record = lost_bytes(options_.lost_id, p.lost_total - p.reported);
      copy_in(p.head, &record, sizeof record);
      prepare_loss_report(extension, p.reported, p.lost_total, p.next_head);
      break;
    }
    case Placement::Kind::kAlone:
      prepare_loss_report(extension, p.reported, p.reported, p.head);
      break;
  }
  write_sample(p.sample, plan, data, capture);
  publish(p.next_head);
  return PutOutcome::kWritten;
}

namespace {

// The bytes of a sample one after the other, a word at a time.
class SampleWords {
 public:
  SampleWords(const SamplePlan& plan, std::span<const std::byte> data,
              std::span<const std::byte> capture)
      : pieces_{std::as_bytes(std::span(&plan.header, 1)),
                std::as_bytes(std::span(&plan.raw_size, 1)), data, capture} {}

  // Zeros behind the end.
  uint64_t next() {
    uint64_t word = 0;
    for (size_t filled = 0; filled < sizeof word && piece_ < pieces_.size();) {
      std::span<const std::byte>& from = pieces_[piece_];
      const size_t size = std::min(from.size(), sizeof word - filled);
      if (size != 0) std::memcpy(reinterpret_cast<std::byte*>(&word) + filled, from.data(), size);
      filled += size;
      from = from.subspan(size);
      if (from.empty()) ++piece_;
    }
    return word;
  }

 private:
  std::array<std::span<const std::byte>, 4> pieces_;
  size_t piece_ = 0;
};

}  // namespace

// A snapshot may be reading what is overwritten here, as in a seqlock: so the stores are atomic.
void RingWriter::put_backward(const SamplePlan& plan, std::span<const std::byte> data,
                              std::span<const std::byte> capture) {
  // A snapshot taken meanwhile cuts off this many bytes below the head it finds.
  uint64_t& largest = memory_.meta->extension.largest_record;
  if (__atomic_load_n(&largest, __ATOMIC_RELAXED) < plan.record_bytes)
    __atomic_store_n(&largest, plan.record_bytes, __ATOMIC_SEQ_CST);
  const uint64_t position = own_head() - plan.record_bytes;
  // Pairs with the snapshot's fence: who has seen a word of this record sees the head before it.
  __atomic_thread_fence(__ATOMIC_RELEASE);
  SampleWords words(plan, data, capture);
  for (uint64_t at = position; at != position + plan.record_bytes; at += sizeof(uint64_t)) {
    std::byte* to = memory_.data + (at & (memory_.data_size - 1));
    __atomic_store_n(reinterpret_cast<uint64_t*>(to), words.next(), __ATOMIC_RELAXED);
  }
  publish(position);
}

void RingWriter::write_sample(uint64_t position, const SamplePlan& plan,
                              std::span<const std::byte> data, std::span<const std::byte> capture) {
  copy_in(position, &plan.header, sizeof plan.header);
  copy_in(position + 8, &plan.raw_size, sizeof plan.raw_size);
  position += ring::kRawPrefix;
  copy_in(position, data.data(), data.size());
  copy_in(position + data.size(), capture.data(), capture.size());
  const uint64_t zeros = 0;
  copy_in(position + plan.payload_bytes, &zeros, plan.raw_size - plan.payload_bytes);
}

void RingWriter::copy_in(uint64_t position, const void* from, uint64_t size) {
  if (size == 0) return;
  const uint64_t offset = position & (memory_.data_size - 1);
  const uint64_t front = memory_.mirrored ? size : std::min(size, memory_.data_size - offset);
  std::memcpy(memory_.data + offset, from, front);
  if (front < size)
    std::memcpy(memory_.data, static_cast<const std::byte*>(from) + front, size - front);
}

uint64_t RingWriter::own_head() const {
  return __atomic_load_n(&memory_.meta->data_head, __ATOMIC_RELAXED);
}

void RingWriter::publish(uint64_t head) {
  // Pairs with the reader's acquire of head: the record is complete.
  __atomic_store_n(&memory_.meta->data_head, head, __ATOMIC_RELEASE);
}

void RingWriter::count_lost() {
  __atomic_fetch_add(&memory_.meta->extension.lost_total, 1, __ATOMIC_RELAXED);
}

uint64_t RingWriter::pending_loss() const {
  const ring::MetaExtension& extension = memory_.meta->extension;
  return __atomic_load_n(&extension.lost_total, __ATOMIC_RELAXED) -
         reported_loss(extension, own_head());
}

uint64_t RingWriter::free_bytes() const {
  return free_bytes_at(*memory_.meta, memory_.data_size, own_head());
}

}  // namespace v0
}  // namespace dwell
