// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
// Outputs the 40 bytes of its context. For machines without loops, sub-programs and 32-bit jumps.
/* In this order: bpf_helpers.h uses the types of bpf.h. */
/* clang-format off */
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
/* clang-format on */

struct words {
  __u64 at[5];
};

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __type(key, __u32);
  __type(value, __u32);
} events SEC(".maps");

SEC("in_process")
__u64 output_words(struct words* ctx) {
  struct words copy = *ctx;
  return bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, &copy, sizeof copy);
}
