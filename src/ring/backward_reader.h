// Reads a backward (overwriting) ring: the writer's head decreases and old records are overwritten,
// so that the ring always holds the latest. A snapshot is a copy, after which the writer may go on.
//
// Two ways to take one. Kernel rings: pause the output first, guard 0. Our rings: no pause; the
// copy is checked against the head afterwards and what was overwritten meanwhile is cut off.
// Invariant: a snapshot holds whole records only, newest first, without gaps but at its old end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.h"
#include "ring/record.h"
#include "ring/ring_reader.h"

namespace dwell {
inline namespace v0 {

class BackwardReader {
 public:
  static Result<BackwardReader> create(const RingMemory& memory);

  // Copies the ring and starts at its newest record. Forgets the snapshot before.
  // `live`: the writer runs meanwhile; trusts its MetaExtension::largest_record.
  void take_snapshot(bool live = false);

  // The next older record of the snapshot, valid until the next take_snapshot(). Null at its end.
  const Record* next();

  // What ended the snapshot: bytes that are no record, with records behind them out of reach.
  bool corrupt() const { return corrupt_; }
  // Bytes of the oldest record, which was partly overwritten.
  uint64_t torn_bytes() const { return torn_bytes_; }
  uint64_t data_size() const { return memory_.data_size; }

 private:
  explicit BackwardReader(const RingMemory& memory);

  RingMemory memory_;
  std::unique_ptr<std::byte[]> copy_;  // data_size bytes
  uint64_t limit_ = 0;                 // valid bytes of copy_
  uint64_t at_ = 0;
  Record record_;
  bool corrupt_ = false;
  uint64_t torn_bytes_ = 0;
};

}  // namespace v0
}  // namespace dwell
