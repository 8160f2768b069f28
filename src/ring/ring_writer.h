// Writes samples into a ring of ours, as the kernel's perf_output does, with four differences that
// docs/ring-abi.md lists: padding is zero, the payload's exact length is kept, payloads above 64
// KiB are refused, a loss never wedges the ring. Makes no syscall.
//
// The caller excludes other producers (one thread, or the ring's lock; UserEventArray's restartable
// sequence does the same steps in assembly). The reader is hostile: its tail is checked.
// Invariant: nothing is visible before the store of head; a producer that dies leaves a sound ring.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "ring/ring_reader.h"

namespace dwell {
inline namespace v0 {

struct WriterOptions {
  bool backward = false;     // overwrite the oldest instead of refusing the newest
  bool exact_length = true;  // padding count in header.misc
  uint64_t lost_id = 0;      // id field of LOST records
};

enum class PutOutcome {
  kWritten,
  kFull,    // refused and counted in lost_total
  kTooBig,  // more than ring::kMaxPayload; counted in drop_too_big, the ring is unchanged
};

// What the store of one sample comes to. Shared with the assembly producer.
struct SamplePlan {
  uint64_t payload_bytes = 0;
  uint64_t record_bytes = 0;
  uint64_t header = 0;  // the 8 bytes of RecordHeader
  uint32_t raw_size = 0;
};

inline SamplePlan plan_sample(uint64_t payload_bytes, bool exact_length) {
  SamplePlan plan;
  plan.payload_bytes = payload_bytes;
  plan.record_bytes = ring::sample_record_size(payload_bytes);
  plan.raw_size = static_cast<uint32_t>(plan.record_bytes - ring::kRawPrefix);
  uint64_t misc = ring::kMiscKernel;
  if (exact_length) misc |= (plan.raw_size - payload_bytes) << ring::kMiscPadShift;
  plan.header = ring::kRecordSample | misc << 32 | plan.record_bytes << 48;
  return plan;
}

// The 24 bytes of a LOST record.
struct LostBytes {
  uint64_t header;
  uint64_t id;
  uint64_t lost;
};
static_assert(sizeof(LostBytes) == ring::kLostRecordSize);
LostBytes lost_bytes(uint64_t id, uint64_t lost);

class RingWriter {
 public:
  static Result<RingWriter> create(const RingMemory& memory, const WriterOptions& options = {});
  // For memory that is known to be sound.
  RingWriter(const RingMemory& memory, const WriterOptions& options)
      : memory_(memory), options_(options) {}

  // One sample with `data` and right behind it `capture`.
  PutOutcome put(std::span<const std::byte> data, std::span<const std::byte> capture = {});

  // One refused output more. Any number of threads and processes at a time.
  void count_lost();
  // Losses that no LOST record has told yet.
  uint64_t pending_loss() const;
  // Bytes that may be written now.
  uint64_t free_bytes() const;

 private:
  PutOutcome put_forward(const SamplePlan& plan, std::span<const std::byte> data,
                         std::span<const std::byte> capture);
  void put_backward(const SamplePlan& plan, std::span<const std::byte> data,
                    std::span<const std::byte> capture);
  void write_sample(uint64_t position, const SamplePlan& plan, std::span<const std::byte> data,
                    std::span<const std::byte> capture);
  void copy_in(uint64_t position, const void* from, uint64_t size);
  void publish(uint64_t head);
  uint64_t own_head() const;

  RingMemory memory_;
  WriterOptions options_;
};

}  // namespace v0
}  // namespace dwell
