// A packet as XDP and socket programs see it. The contexts of BPF have 32-bit fields for the
// packet's address, which the kernel's verifier widens; here the bytes lie below 4 GiB, so that the
// same source finds them.
#pragma once

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/result.h"
#include "event_array/mapping.h"
#include "event_array/user_event_map.h"

namespace dwell::runtime {

inline constexpr size_t kMaxPacketBytes = 1 << 20;

class Packet {
 public:
  static Result<std::unique_ptr<Packet>> create(std::span<const std::byte> bytes);

  DataContext data() const { return {memory_.data(), memory_.data() + bytes_}; }
  xdp_md* xdp() { return &xdp_; }
  __sk_buff* skb() { return &skb_; }
  // What a typed tracepoint would pass as its sk_buff or xdp_buff, for bpf_skb_output and
  // bpf_xdp_output.
  void* kernel() { return this; }
  // Null if `pointer` is no packet's kernel(): then the program passed something else.
  static const Packet* of(const void* pointer);

 private:
  Packet(Mapping memory, size_t bytes);

  static constexpr uint64_t kMagic = 0x74656b63'61707764;
  uint64_t magic_ = kMagic;
  Mapping memory_;
  size_t bytes_;
  xdp_md xdp_ = {};
  __sk_buff skb_ = {};
};

}  // namespace dwell::runtime
