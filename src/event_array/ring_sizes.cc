#include "event_array/ring_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/text.h"
#include "ring/layout.h"

namespace dwell {
inline namespace v0 {

Result<uint64_t> effective_ring_bytes(const RingSizeRequest& request, uint32_t rings,
                                      uint64_t page_bytes) {
  if (request.bytes_per_cpu != 0 && request.total_bytes != 0)
    return usage_error("give either the bytes per CPU or the total bytes of the rings, not both");
  uint64_t bytes = kDefaultRingBytes;
  if (request.bytes_per_cpu > kMaxRingBytes)
    return usage_error(fmt::format("a ring of {} per CPU is too large; the limit is {}",
                                   format_bytes(request.bytes_per_cpu),
                                   format_bytes(kMaxRingBytes)));
  if (request.bytes_per_cpu != 0) bytes = std::bit_ceil(request.bytes_per_cpu);
  if (request.total_bytes != 0) {
    const uint64_t share = request.total_bytes / std::max(rings, 1u);
    bytes = share < page_bytes ? page_bytes : std::bit_floor(std::min(share, kMaxRingBytes));
  }
  return std::max(bytes, page_bytes);
}

Result<Wakeup> effective_wakeup(const WakeupRequest& request, uint64_t ring_bytes) {
  constexpr uint64_t kSmallestSample = 16;
  if (request.watermark_bytes != 0 && request.every_n_events != 0)
    return usage_error("give either a watermark or a number of events per wake-up, not both");
  if (request.every_n_events != 0) {
    // Beyond half a ring the kernel's own half-ring rule wakes, if at all.
    const uint64_t most = ring_bytes / 2 / kSmallestSample;
    if (request.every_n_events <= most) return Wakeup{0, request.every_n_events, false};
    if (request.clamp) return Wakeup{ring_bytes / 2, 0, true};
    return usage_error(fmt::format(
        "a wake-up every {} events is out of reach of a ring of {}; ask for at most {} events or "
        "a larger ring",
        request.every_n_events, format_bytes(ring_bytes), most));
  }
  if (request.watermark_bytes == 0)
    return Wakeup{std::min(ring_bytes / 4, uint64_t{64} << 10), 0, false};
  if (request.watermark_bytes <= ring_bytes / 2) return Wakeup{request.watermark_bytes, 0, false};
  if (request.clamp) return Wakeup{ring_bytes / 2, 0, true};
  return usage_error(
      fmt::format("a watermark of {} never fires in a ring of {}; ask for at most {} or a larger "
                  "ring",
                  format_bytes(request.watermark_bytes), format_bytes(ring_bytes),
                  format_bytes(ring_bytes / 2)));
}

std::optional<std::string> payload_warning(uint64_t max_payload, uint64_t ring_bytes, bool kernel) {
  if (max_payload > ring::kMaxPayload)
    return fmt::format(
        "payloads of {} bytes exceed the {} bytes that a record can hold; larger ones destroy "
        "unread records",
        max_payload, ring::kMaxPayload);
  const uint64_t record = ring::sample_record_size(max_payload);
  if (record > ring::usable_bytes(ring_bytes))
    return fmt::format(
        "payloads of {} bytes never fit into rings of {} bytes; ask for at least {} bytes per CPU",
        max_payload, ring_bytes, std::bit_ceil(record + ring::kLostRecordSize + 8));
  if (kernel && record > ring::usable_bytes(ring_bytes) - ring::kLostRecordSize)
    return fmt::format(
        "payloads of {} bytes fit into rings of {} bytes only until the first loss: the LOST "
        "record then stands in their way for ever; ask for at least {} bytes per CPU",
        max_payload, ring_bytes, ring_bytes * 2);
  return std::nullopt;
}

}  // namespace v0
}  // namespace dwell
