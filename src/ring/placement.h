// Where a sample would go in a forward ring of ours, decided from one snapshot of the ring. Shared
// by RingWriter, which then writes, and by the restartable producer, which first checks that the
// snapshot still holds. Pure but for the loads.
#pragma once

#include <cstdint>

#include "ring/layout.h"
#include "ring/loss_report.h"

namespace dwell {
inline namespace v0 {

struct Placement {
  enum class Kind {
    kFull,
    kPlain,     // the sample at `head`
    kWithLost,  // LOST at `head`, the sample behind it
    kAlone,     // the sample at `head`; a loss stays pending because both never fit
  };
  Kind kind = Kind::kFull;
  uint64_t head = 0;
  uint64_t lost_total = 0;
  uint64_t reported = 0;  // of lost_total
  uint64_t sample = 0;    // position of the sample
  uint64_t next_head = 0;
};

// Bytes that may be written while the head is at `head`.
inline uint64_t free_bytes_at(const ring::MetaPage& meta, uint64_t data_size, uint64_t head) {
  // Pairs with the reader's release of tail: it has read what we are about to overwrite.
  const uint64_t used = head - __atomic_load_n(&meta.data_tail, __ATOMIC_ACQUIRE);
  const uint64_t usable = ring::usable_bytes(data_size);
  return used <= usable ? usable - used : 0;  // an impossible tail means full, never more room
}

inline Placement place_sample(const ring::MetaPage& meta, uint64_t data_size,
                              uint64_t record_bytes) {
  Placement p;
  p.head = __atomic_load_n(&meta.data_head, __ATOMIC_RELAXED);
  p.lost_total = __atomic_load_n(&meta.extension.lost_total, __ATOMIC_RELAXED);
  p.reported = reported_loss(meta.extension, p.head);
  p.sample = p.head;
  const uint64_t free = free_bytes_at(meta, data_size, p.head);
  if (p.lost_total == p.reported) {
    if (record_bytes <= free) p.kind = Placement::Kind::kPlain;
  } else if (record_bytes + ring::kLostRecordSize <= free) {
    p.kind = Placement::Kind::kWithLost;
    p.sample += ring::kLostRecordSize;
  } else if (record_bytes <= free && free == ring::usable_bytes(data_size)) {
    p.kind = Placement::Kind::kAlone;
  }
  p.next_head = p.sample + record_bytes;
  return p;
}

}  // namespace v0
}  // namespace dwell
