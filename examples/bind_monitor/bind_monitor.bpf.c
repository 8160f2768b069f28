// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0-only)
// Tells each call of bind(): who asks, and for which address.
#include "bind_monitor.h"

#include <bpf/bpf_helpers.h>
#include <linux/bpf.h>

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __type(key, __u32);
  __type(value, __u32);
} events SEC(".maps");

SEC("tracepoint/syscalls/sys_enter_bind")
int enter_bind(struct sys_enter* ctx) {
  struct bind_asked asked = {.pid = bpf_get_current_pid_tgid() >> 32};
  bpf_get_current_comm(asked.name, sizeof(asked.name));
  // bind(socket, address, length). The address is the caller's memory: copied, never followed.
  const void* address = (const void*)ctx->args[1];
  __u32 length = ctx->args[2];
  // Compared in 32 bits: with a sizeof the compiler compares a widened copy, and the verifier takes
  // `length` itself for unbounded.
  if (length <= ADDRESS_BYTES && bpf_probe_read_user(asked.address, length, address) == 0)
    asked.address_bytes = length;
  bpf_perf_event_output(ctx, &events, BPF_F_CURRENT_CPU, &asked, sizeof(asked));
  return 0;
}

char LICENSE[] SEC("license") = "GPL";
