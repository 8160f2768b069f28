#include "event_array/time_order.h"

#include <algorithm>
#include <cstring>

#include "ring/layout.h"

namespace dwell {
inline namespace v0 {

// Records leave about as they came, so that whole chunks become free again soon.
struct TimeOrder::Chunk {
  static constexpr size_t kBytes = 4 * (ring::kMaxRecord + ring::kRecordAlign);
  alignas(8) std::byte bytes[kBytes];
  size_t used = 0;
  size_t live = 0;  // records that are still held
};

TimeOrder::TimeOrder(uint64_t max_bytes, Sink sink)
    : max_bytes_(max_bytes), sink_(std::move(sink)) {}
TimeOrder::TimeOrder(TimeOrder&&) noexcept = default;
TimeOrder& TimeOrder::operator=(TimeOrder&&) noexcept = default;
TimeOrder::~TimeOrder() = default;

// Heap order: the oldest on top; of one time, the first pushed.
bool TimeOrder::later(const Entry& a, const Entry& b) {
  return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.serial > b.serial;
}

std::byte* TimeOrder::store(const Record& record, Chunk** chunk) {
  const size_t size = record.body.size();
  if (filling_ == nullptr || Chunk::kBytes - filling_->used < size) {
    if (spare_.empty()) {
      chunks_.push_back(std::make_unique<Chunk>());
      spare_.push_back(chunks_.back().get());
    }
    filling_ = spare_.back();
    spare_.pop_back();
  }
  *chunk = filling_;
  std::byte* at = filling_->bytes + filling_->used;
  if (size != 0) std::memcpy(at, record.body.data(), size);
  filling_->used += (size + 7) / 8 * 8;
  ++filling_->live;
  return at;
}

void TimeOrder::recycle(Chunk* chunk) {
  if (--chunk->live != 0) return;
  chunk->used = 0;
  if (chunk != filling_) spare_.push_back(chunk);
}

void TimeOrder::push(uint32_t cpu, uint64_t time_ns, const Record& record) {
  if (newest_.size() <= cpu) newest_.resize(cpu + 1);
  newest_[cpu] = std::max(newest_[cpu], time_ns);
  Chunk* chunk = nullptr;
  const std::byte* body = store(record, &chunk);
  heap_.push_back({time_ns, serial_++, chunk, body, cpu, record.type, record.misc, record.size});
  std::push_heap(heap_.begin(), heap_.end(), later);
  held_bytes_ += record.size;
  while (held_bytes_ > max_bytes_ && heap_.size() > 1) {
    ++forced_;
    emit_oldest();
  }
}

void TimeOrder::push_behind(uint32_t cpu, const Record& record) {
  push(cpu, newest_of(cpu), record);
}

void TimeOrder::emit_oldest() {
  std::pop_heap(heap_.begin(), heap_.end(), later);
  const Entry entry = heap_.back();
  heap_.pop_back();
  OrderedRecord out;
  out.cpu = entry.cpu;
  out.time_ns = entry.time_ns;
  out.late = entry.time_ns < last_emitted_ns_;
  out.record = {entry.type,
                entry.misc,
                entry.size,
                {entry.body, static_cast<size_t>(entry.size) - sizeof(ring::RecordHeader)}};
  late_ += out.late;
  last_emitted_ns_ = std::max(last_emitted_ns_, entry.time_ns);
  held_bytes_ -= entry.size;
  sink_(out);
  recycle(entry.chunk);
}

void TimeOrder::emit_until(uint64_t cut_ns, const std::function<bool()>& go_on) {
  while (!heap_.empty() && heap_.front().time_ns <= cut_ns && (!go_on || go_on())) emit_oldest();
}

uint64_t TimeOrder::newest_of(uint32_t cpu) const {
  return cpu < newest_.size() ? newest_[cpu] : 0;
}

}  // namespace v0
}  // namespace dwell
