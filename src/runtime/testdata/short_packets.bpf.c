// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
// Drops packets that are too short, and tells each with its bytes.
/* In this order: bpf_helpers.h uses the types of bpf.h. */
/* clang-format off */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
/* clang-format on */

struct dropped {
  __u64 at_ns;
  __u32 bytes;
  __u32 cpu;
};

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __type(key, __u32);
  __type(value, __u32);
} events SEC(".maps");

const volatile __u32 shortest = 60;

SEC("xdp")
int drop_short(struct xdp_md* ctx) {
  __u32 bytes = ctx->data_end - ctx->data;
  if (bytes >= shortest) return XDP_PASS;
  struct dropped dropped = {bpf_ktime_get_ns(), bytes, bpf_get_smp_processor_id()};
  __u64 flags = BPF_F_CURRENT_CPU | (__u64)bytes << 32; /* and so many bytes of the packet */
  bpf_perf_event_output(ctx, &events, flags, &dropped, sizeof(dropped));
  return XDP_DROP;
}

char LICENSE[] SEC("license") = "GPL";
