// How much of a user-space ring's loss its LOST records have told, kept so that a producer may be
// killed or restarted between any two stores. docs/ring-abi.md "LOST without a wedge" explains it.
//
// Three words stand for one number: while head has not reached report_head the number is
// report_old, afterwards it is report_new. A report is prepared in four stores, none of which
// changes the number; the store of head that publishes the LOST record changes it.
#pragma once

#include <cstdint>

#include "ring/layout.h"

namespace dwell {
inline namespace v0 {

// Events already told, as a producer or an observer at `head` sees it. Forward rings only.
inline uint64_t reported_loss(const ring::MetaExtension& extension, uint64_t head) {
  const uint64_t at = __atomic_load_n(&extension.report_head, __ATOMIC_RELAXED);
  const bool published = static_cast<int64_t>(head - at) >= 0;
  return __atomic_load_n(published ? &extension.report_new : &extension.report_old,
                         __ATOMIC_RELAXED);
}

// Makes the stores. `reported` is reported_loss() now; `next` comes into force when head reaches
// `head`. Excludes other producers of the ring. With next == reported it withdraws a report that
// was prepared and never published.
inline void prepare_loss_report(ring::MetaExtension& extension, uint64_t reported, uint64_t next,
                                uint64_t head) {
  // Release keeps the stores in program order for a successor on another CPU.
  __atomic_store_n(&extension.report_old, reported, __ATOMIC_RELEASE);
  __atomic_store_n(&extension.report_new, reported, __ATOMIC_RELEASE);
  __atomic_store_n(&extension.report_head, head, __ATOMIC_RELEASE);
  __atomic_store_n(&extension.report_new, next, __ATOMIC_RELEASE);
}

}  // namespace v0
}  // namespace dwell
