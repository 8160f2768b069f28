// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// Samples one packet in `one_in`: its length and its first bytes. Every packet passes.
#include "packet_sampler.h"

#include <bpf/bpf_helpers.h>
#include <linux/bpf.h>

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __type(key, __u32);
  __type(value, __u32);
} events SEC(".maps");

const volatile __u32 one_in = 1;

SEC("xdp")
int sample_packet(struct xdp_md* ctx) {
  if (bpf_get_prandom_u32() % one_in != 0) return XDP_PASS;
  // Of pointers: the verifier refuses to subtract the 32-bit fields themselves.
  __u64 bytes = (void*)(long)ctx->data_end - (void*)(long)ctx->data;
  __u64 captured = bytes < CAPTURE_BYTES ? bytes : CAPTURE_BYTES;
  struct sample sample = {.packet_bytes = bytes, .captured_bytes = captured};
  // The upper half of the flags (BPF_F_CTXLEN_MASK) asks for so many bytes of the context, which
  // the kernel copies from the packet into the ring, behind the struct.
  bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU | captured << 32, &sample, sizeof(sample));
  return XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
