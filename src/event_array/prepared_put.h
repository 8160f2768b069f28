// A record and where it goes, decided from a snapshot of the ring: what a restartable sequence
// (restartable_put.h) checks and stores. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ring/layout.h"

namespace dwell {
inline namespace v0 {

// What few outputs have. The assembly reads it by offset.
struct PutExtras {
  const std::byte* capture;  // goes behind the data
  uint64_t capture_size;
  // A report of lost outputs (see ring/loss_report.h):
  uint64_t report;  // 0: none, 1: with a LOST record, 2: withdraw only
  uint64_t reported;
  uint64_t report_next;
  uint64_t report_head;
  uint64_t lost_header;
  uint64_t lost_id;
  uint64_t lost_count;
  std::byte* lost_record;
};

struct PreparedPut {
  ring::MetaPage* meta;
  uint64_t head;        // must still be the ring's head
  uint64_t lost_total;  // must still be the ring's loss
  uint64_t next_head;   // what is stored in the end
  std::byte* record;    // where the sample goes
  uint64_t record_bytes;
  uint64_t header;
  const std::byte* data;
  uint64_t data_size;
  const PutExtras* extras;  // null: neither report nor capture
};

enum class PutStep {
  kDone,
  kMoved,    // another CPU: start over
  kChanged,  // another producer was faster: start over
  kAborted,  // preempted or interrupted: start over
};

}  // namespace v0
}  // namespace dwell
