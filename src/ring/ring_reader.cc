#include "ring/ring_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace dwell {
inline namespace v0 {

Result<RingReader> RingReader::create(const RingMemory& memory) {
  if (memory.meta == nullptr || memory.data == nullptr)
    return usage_error("cannot read a ring: no memory given");
  if (!ring::is_power_of_two(memory.data_size) || memory.data_size < ring::kRecordAlign * 2)
    return usage_error(
        fmt::format("cannot read a ring of {} bytes: the size must be a power of two of at least "
                    "16",
                    memory.data_size));
  if (reinterpret_cast<uintptr_t>(memory.data) % ring::kRecordAlign != 0)
    return usage_error("cannot read a ring: its data area must be 8-byte aligned");
  return RingReader(memory);
}

RingReader::RingReader(const RingMemory& memory) : memory_(memory) {
  if (!memory_.mirrored) {
    const uint64_t longest = std::min(memory_.data_size, ring::kMaxRecord);
    scratch_ = std::make_unique_for_overwrite<std::byte[]>(longest);
  }
  tail_ = __atomic_load_n(&memory_.meta->data_tail, __ATOMIC_RELAXED);
  released_ = tail_;
  // A reader that died may have left any tail. A possible one resumes; another is data lost.
  const uint64_t head = load_head();
  if (tail_ % ring::kRecordAlign != 0 || head - tail_ > memory_.data_size) report_corruption(head);
}

void RingReader::report_corruption(uint64_t head) {
  // More than one ring cannot have been there to be skipped.
  const uint64_t skipped = std::min(head - tail_, memory_.data_size);
  corruption_ = Corruption{tail_, skipped};
  ++counts_.corrupt;
  counts_.skipped_bytes += skipped;
  tail_ = head & ~(ring::kRecordAlign - 1);  // a rogue head must not misalign later reads
  store_tail();
}

RingReader::Batch RingReader::begin(const Budget& budget) { return Batch(*this, budget); }

RingReader::Batch::Batch(RingReader& reader, const Budget& budget)
    : reader_(reader),
      start_(reader.tail_),
      at_(reader.tail_),
      head_(reader.load_head()),
      release_step_(budget.hold ? UINT64_MAX : reader.memory_.data_size / 2),
      max_records_(budget.max_records) {
  uint64_t avail = head_ - at_;
  end_ = checkpoint_ = 0;
  if (avail < ring::kRecordAlign) return;
  if (avail > reader.memory_.data_size || head_ % ring::kRecordAlign != 0) {
    end_corrupt();
    return;
  }
  end_ = std::min(avail, budget.max_bytes);
  checkpoint_ = std::min(end_, release_step_);
}

// Out of line: what happens at most a few times per batch. False if the batch is over.
bool RingReader::Batch::pass_checkpoint() {
  const uint64_t done = at_ - start_;
  if (done >= end_) return false;
  // Half a ring is consumed: the producer gets it back now.
  reader_.tail_ = at_;
  reader_.store_tail();
  checkpoint_ = std::min(end_, done + release_step_);
  return true;
}

const Record* RingReader::Batch::end_corrupt() {
  corrupt_ = true;
  reader_.counts_.bytes += at_ - start_;
  reader_.tail_ = at_;
  reader_.report_corruption(head_);
  start_ = at_ = reader_.tail_;
  end_ = checkpoint_ = 0;
  return nullptr;
}

void RingReader::Batch::finish() {
  ReaderCounts& counts = reader_.counts_;
  counts.records += records_;
  counts.by_type[ring::kRecordSample] += records_ - others_;
  counts.bytes += at_ - start_;
  reader_.tail_ = at_;
  reader_.store_tail();
}

const std::byte* RingReader::contiguous(uint64_t position, uint64_t size) {
  const uint64_t offset = position & (memory_.data_size - 1);
  if (memory_.mirrored) return memory_.data + offset;
  // A batch spans at most one ring, so that it has at most one wrapped record: the scratch of a
  // record that somebody holds is never overwritten within the batch.
  const uint64_t front = memory_.data_size - offset;
  std::memcpy(scratch_.get(), memory_.data + offset, front);
  std::memcpy(scratch_.get() + front, memory_.data, size - front);
  return scratch_.get();
}

void RingReader::count_other(const Record& record) {
  ++counts_.by_type[std::min<size_t>(record.type, ReaderCounts::kTypes - 1)];
  if (const auto lost = lost_count(record)) counts_.lost += *lost;
}

}  // namespace v0
}  // namespace dwell
