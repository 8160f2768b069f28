// The producer's commit: copies a record into free space and publishes it with one store, inside a
// restartable sequence (rseq(2)). Preemption, migration and signals restart it, so that no other
// code of this CPU runs between the check of the head and its store: no atomics, no lock, and
// whoever is killed inside has published nothing. Safe in signal handlers and across processes.
//
// Everything that is computed from a snapshot of head and loss is computed before; the sequence
// only checks that the snapshot still holds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ring/layout.h"

namespace dwell {
inline namespace v0 {

// What the assembly reads, by offset.
struct PreparedPut {
  ring::MetaPage* meta;
  uint64_t head;           // must still be the ring's head
  uint64_t lost_total;     // must still be the ring's loss
  uint64_t next_head;      // what is stored in the end
  std::byte* record;       // where the sample goes
  std::byte* record_last;  // its last 8 bytes: zeroed before the payload
  uint64_t header;
  uint64_t raw_size;
  const std::byte* data;
  uint64_t data_size;
  const std::byte* capture;
  uint64_t capture_size;
  // With a report (see ring/loss_report.h):
  uint64_t report;  // 0: none, 1: with a LOST record, 2: withdraw only
  uint64_t reported;
  uint64_t report_next;
  uint64_t report_head;
  uint64_t lost_header;
  uint64_t lost_id;
  uint64_t lost_count;
  std::byte* lost_record;
};

enum class PutStep {
  kDone,
  kMoved,    // another CPU: start over
  kChanged,  // another producer was faster: start over
  kAborted,  // preempted or interrupted: start over
};

// Whether this process can run restartable sequences: the C library registered rseq with the
// kernel (glibc 2.35; its tunable glibc.pthread.rseq=0 turns it off) and a trial succeeded.
bool restartable_sequences_work();

// The CPU that this thread runs on, by rseq. Only if restartable_sequences_work().
uint32_t restartable_cpu();

PutStep restartable_put(uint32_t cpu, const PreparedPut& put);

}  // namespace v0
}  // namespace dwell
