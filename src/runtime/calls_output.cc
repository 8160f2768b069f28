// What programs write: perf event arrays, ring buffers, iterators' output, the trace.
#include <linux/bpf.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "runtime/calls.h"
#include "runtime/event_map.h"
#include "runtime/packet.h"
#include "runtime/ring_buffer_map.h"
#include "runtime/seq_file.h"

namespace dwell::runtime {
namespace {

constexpr size_t kMostTraceBytes = 1024;

// bpf_skb_output and bpf_xdp_output: a tracing program that has a packet among its arguments.
long output_packet(const void* packet, void* map, uint64_t flags, const void* data, uint64_t size) {
  Frame& f = enter_call();
  auto* events = map_as<EventMap>(map);
  if (events == nullptr) return -EINVAL;
  const Packet* found = Packet::of(packet);
  const DataContext context = found != nullptr ? found->data() : DataContext{};
  return events->output(f.cpu, flags, bytes_of(data, size), context);
}

}  // namespace

extern "C" {

long dwell_bpf_perf_event_output(void*, void* map, uint64_t flags, void* data, uint64_t size) {
  Frame& f = enter_call();
  auto* events = map_as<EventMap>(map);
  if (events == nullptr) return -EINVAL;
  if (f.kind == ProgramKind::kData)
    return events->output(f.cpu, flags, bytes_of(data, size),
                          f.data != nullptr ? *f.data : DataContext{});
  return events->output(f.cpu, flags, bytes_of(data, size));
}

long dwell_bpf_skb_output(void* skb, void* map, uint64_t flags, void* data, uint64_t size) {
  return output_packet(skb, map, flags, data, size);
}

long dwell_bpf_xdp_output(void* xdp, void* map, uint64_t flags, void* data, uint64_t size) {
  return output_packet(xdp, map, flags, data, size);
}

long dwell_bpf_perf_event_read_value(void* map, uint64_t flags, bpf_perf_event_value* value,
                                     uint32_t size) {
  Frame& f = enter_call();
  auto* events = map_as<EventMap>(map);
  long result = -EINVAL;
  if (events != nullptr && size == sizeof *value)
    result = events->read_counter(f.cpu, flags, *value);
  if (result != 0) std::memset(static_cast<void*>(value), 0, size);
  return result;
}

long dwell_bpf_ringbuf_output(void* map, void* data, uint64_t size, uint64_t flags) {
  enter_call();
  auto* ring = map_as<RingBufferMap>(map);
  return ring == nullptr ? -EINVAL : ring->output(data, size, flags);
}

void* dwell_bpf_ringbuf_reserve(void* map, uint64_t size, uint64_t flags) {
  enter_call();
  auto* ring = map_as<RingBufferMap>(map);
  return ring == nullptr || flags != 0 ? nullptr : ring->reserve(size);
}

void dwell_bpf_ringbuf_submit(void* record, uint64_t flags) {
  enter_call();
  RingBufferMap::finish(record, true, flags);
}

void dwell_bpf_ringbuf_discard(void* record, uint64_t flags) {
  enter_call();
  RingBufferMap::finish(record, false, flags);
}

uint64_t dwell_bpf_ringbuf_query(void* map, uint64_t flags) {
  enter_call();
  const auto* ring = map_as<RingBufferMap>(map);
  return ring == nullptr ? 0 : ring->query(flags);
}

long dwell_bpf_seq_write(void* seq, const void* data, uint32_t size) {
  enter_call();
  return static_cast<SeqFile*>(seq)->write(bytes_of(data, size)) ? 0 : -EOVERFLOW;
}

long dwell_bpf_trace_printk(const char* format, uint32_t format_bytes, ...) {
  Frame& f = enter_call();
  char text[kMostTraceBytes];
  va_list arguments;
  va_start(arguments, format_bytes);
  const int length = std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length < 0) return -EINVAL;
  f.machine.trace(text);
  return std::min<long>(length, sizeof text - 1);
}

}  // extern "C"

}  // namespace dwell::runtime
