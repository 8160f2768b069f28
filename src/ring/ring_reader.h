// Reads records out of one forward ring in memory: a kernel perf ring or one of ours. Makes no
// syscall and knows no descriptor.
//
// Invariants: nothing outside the ring is read, whatever its bytes and positions say; a batch ends
// at the head it saw when it began, so a fast producer cannot hold the reader; the tail is stored
// (release) when a batch ends, and only covers records that were handed out.
// One thread at a time; the other side is the producer, through head and tail alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/result.h"
#include "ring/record.h"

namespace dwell {
inline namespace v0 {

// Where a ring lies. Borrowed: must outlive the reader or writer made from it.
struct RingMemory {
  ring::MetaPage* meta = nullptr;
  std::byte* data = nullptr;  // 8-byte aligned; never written through by a reader
  uint64_t data_size = 0;     // power of two
  bool mirrored = false;      // the data area is mapped a second time right after itself
};

// What may end a batch before the head that it saw at its start.
struct Budget {
  uint64_t max_records = UINT64_MAX;
  uint64_t max_bytes = UINT64_MAX;
  // Keeps every record of the batch valid until the batch ends. Otherwise the tail also moves when
  // half a ring has been consumed, so that a slow consumer does not starve the producer.
  bool hold = false;
};

// Bytes that cannot be records. The ring goes on after them.
struct Corruption {
  uint64_t position = 0;       // where the first bad header is
  uint64_t skipped_bytes = 0;  // from there to the head
};

struct ReaderCounts {
  static constexpr size_t kTypes = 32;  // types from 31 on share the last element
  uint64_t records = 0;
  uint64_t bytes = 0;
  uint64_t lost = 0;  // sum over LOST and LOST_SAMPLES records
  uint64_t corrupt = 0;
  uint64_t skipped_bytes = 0;
  std::array<uint64_t, kTypes> by_type{};  // samples are by_type[9]
};

class RingReader {
 public:
  class Batch;

  // Starts at the tail that is stored in the ring, or at the head if that tail is impossible.
  static Result<RingReader> create(const RingMemory& memory);

  // The ring must not be read through another batch until this one is gone.
  Batch begin(const Budget& budget = {});

  // Calls `consume(const Record&)` for each record of one batch. If it returns bool, false stops
  // after that record; the rest comes with the next batch. Returns the number of records.
  // A record whose call throws counts as consumed.
  template <typename Consume>
  uint64_t drain(const Budget& budget, Consume&& consume);

  // One load of the head. False for the odd bytes that a rogue head can leave: they never become a
  // record, and whoever loops until a ring is empty must end.
  bool has_data() const { return available_bytes() >= ring::kRecordAlign; }
  // Bytes that wait; above data_size the ring is corrupt.
  uint64_t available_bytes() const { return load_head() - tail_; }
  uint64_t position() const { return tail_; }
  uint64_t head() const { return load_head(); }
  uint64_t data_size() const { return memory_.data_size; }
  const ReaderCounts& counts() const { return counts_; }
  // The last corruption met, if any.
  const std::optional<Corruption>& corruption() const { return corruption_; }

 private:
  explicit RingReader(const RingMemory& memory);

  uint64_t load_head() const;
  void store_tail();
  void report_corruption(uint64_t head);
  const std::byte* contiguous(uint64_t position, uint64_t size);
  void count_other(const Record& record);

  RingMemory memory_;
  uint64_t tail_ = 0;      // consumed up to here; never read back from the ring after the start
  uint64_t released_ = 0;  // the tail that the producer sees
  std::unique_ptr<std::byte[]> scratch_;  // for the one record that wraps; none if mirrored
  ReaderCounts counts_;
  std::optional<Corruption> corruption_;
};

// One pass over the records that were there when it began. Ends (destructor) by giving the space
// back to the producer, also when an exception unwinds it.
class RingReader::Batch {
 public:
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;
  ~Batch() { finish(); }

  // The next record, valid until the next call (with Budget::hold: until the batch ends). Null when
  // the batch is over: head or budget reached, or bytes that are no record (then corrupt()).
  const Record* next();
  bool corrupt() const { return corrupt_; }

 private:
  friend class RingReader;
  static constexpr uint64_t kPrefetchFrom = 128;  // below, the processor sees the stride itself
  static constexpr uint64_t kPrefetchAhead = 3;   // records

  Batch(RingReader& reader, const Budget& budget);

  bool pass_checkpoint();
  const Record* end_corrupt();
  void finish();

  RingReader& reader_;
  Record record_;
  uint64_t start_;         // positions: where the batch began,
  uint64_t at_;            // where it is,
  uint64_t head_;          // where the ring ended when it began
  uint64_t end_;           // bytes after start_ at which it is over
  uint64_t checkpoint_;    // bytes after start_ at which pass_checkpoint() has something to do
  uint64_t release_step_;  // unreleased bytes that make the tail move early
  uint64_t records_ = 0;
  uint64_t others_ = 0;  // records that are no samples
  uint64_t max_records_;
  bool corrupt_ = false;
};

// -- hot path, inline so that a drain loop becomes one function ------------------------------

inline uint64_t RingReader::load_head() const {
  // Pairs with the producer's release of head: records below it are complete.
  return __atomic_load_n(&memory_.meta->data_head, __ATOMIC_ACQUIRE);
}

inline void RingReader::store_tail() {
  if (released_ == tail_) return;
  released_ = tail_;
  // Pairs with the producer's load of tail: our reads of the records are done before it writes.
  __atomic_store_n(&memory_.meta->data_tail, tail_, __ATOMIC_RELEASE);
}

inline const Record* RingReader::Batch::next() {
  if (at_ - start_ >= checkpoint_ && !pass_checkpoint()) return nullptr;
  if (records_ == max_records_) return nullptr;
  const RingMemory& ring = reader_.memory_;
  const uint64_t offset = at_ & (ring.data_size - 1);
  // Read once: a hostile writer may change it between a check and a use.
  const uint64_t cell =
      __atomic_load_n(reinterpret_cast<const uint64_t*>(ring.data + offset), __ATOMIC_RELAXED);
  record_.type = static_cast<uint32_t>(cell);
  record_.misc = static_cast<uint16_t>(cell >> 32);
  const uint64_t size = cell >> 48;
  record_.size = static_cast<uint16_t>(size);
  if (size < sizeof(ring::RecordHeader) || size > head_ - at_ || size % ring::kRecordAlign != 0)
    return end_corrupt();

  // A record tells where the next one is, and memory is slow: with larger records, each of which
  // begins on a cold line, guess that those to come are as large. Any place in the ring is
  // harmless.
  if (size >= kPrefetchFrom)
    __builtin_prefetch(ring.data + ((at_ + kPrefetchAhead * size) & (ring.data_size - 1)));
  const std::byte* bytes = ring.data + offset;
  if (offset + size > ring.data_size) bytes = reader_.contiguous(at_, size);
  record_.body = {bytes + sizeof(ring::RecordHeader), size - sizeof(ring::RecordHeader)};
  at_ += size;
  ++records_;
  if (record_.type != ring::kRecordSample) [[unlikely]] {
    ++others_;
    reader_.count_other(record_);
  }
  return &record_;
}

template <typename Consume>
uint64_t RingReader::drain(const Budget& budget, Consume&& consume) {
  Batch batch = begin(budget);
  uint64_t records = 0;
  while (const Record* record = batch.next()) {
    ++records;
    if constexpr (std::is_same_v<std::invoke_result_t<Consume, const Record&>, bool>) {
      if (!consume(*record)) break;
    } else {
      consume(*record);
    }
  }
  return records;
}

}  // namespace v0
}  // namespace dwell
