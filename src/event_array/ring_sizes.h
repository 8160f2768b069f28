// Sizes of rings and the wake-ups that they allow. Pure arithmetic over a page size that the caller
// gives, because 64 KiB pages turn 8 KiB into 64 KiB.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace dwell {
inline namespace v0 {

inline constexpr uint64_t kDefaultRingBytes = 512 << 10;  // with its page just what mlock_kb allows
inline constexpr uint64_t kMaxRingBytes = uint64_t{1} << 30;

struct RingSizeRequest {
  uint64_t bytes_per_cpu = 0;  // rounded up; 0: kDefaultRingBytes
  uint64_t total_bytes = 0;    // if not 0: shared by all rings, rounded down, at least a page each
};

// Bytes of each ring's data area: a power of two pages.
Result<uint64_t> effective_ring_bytes(const RingSizeRequest& request, uint32_t rings,
                                      uint64_t page_bytes);

// When the producer wakes the reader. One of the two, or none for the default.
struct WakeupRequest {
  uint64_t watermark_bytes = 0;
  uint32_t every_n_events = 0;
  bool clamp = true;  // an unreachable watermark becomes half the ring; otherwise it is refused
};

struct Wakeup {
  uint64_t watermark_bytes = 0;  // 0: every_n_events counts
  uint32_t every_n_events = 0;
  bool clamped = false;
};

// The kernel wakes when head - last wake > watermark: a watermark near the ring's size never fires,
// while the ring drops. So half the ring is the most. `every_n_events` must be reachable too, with
// records of at least 16 bytes.
Result<Wakeup> effective_wakeup(const WakeupRequest& request, uint64_t ring_bytes);

// What a largest payload means for a ring of this size: a sentence, or none if all is well.
// `kernel`: the kernel's writer, whose LOST record can wedge the ring (docs/ring-abi.md).
std::optional<std::string> payload_warning(uint64_t max_payload, uint64_t ring_bytes, bool kernel);

}  // namespace v0
}  // namespace dwell
