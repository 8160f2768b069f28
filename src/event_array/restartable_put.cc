#include "event_array/restartable_put.h"

namespace dwell {
inline namespace v0 {

#if defined(__x86_64__)

bool restartable_sequences_work() {
  static const bool works = [] {
    if (__rseq_size == 0) return false;
    const uint32_t cpu = __atomic_load_n(&own_rseq()->cpu_id, __ATOMIC_RELAXED);
    if (static_cast<int32_t>(cpu) < 0) return false;
    // A trial put into a page of our own.
    alignas(64) static ring::MetaPage meta;
    alignas(8) std::byte record[16];
    PreparedPut put = {};
    put.meta = &meta;
    put.next_head = sizeof record;
    put.record = record;
    put.record_bytes = sizeof record;
    for (int tries = 0; tries < 100; ++tries)
      if (restartable_put(restartable_cpu(), put) == PutStep::kDone) return true;
    return false;
  }();
  return works;
}

#else

bool restartable_sequences_work() { return false; }

#endif

}  // namespace v0
}  // namespace dwell
