// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
// The workload W-gen: outputs to a perf event array on demand. From a thread of the chosen process:
// syscall(999, size, flags, raw) makes one output of `size` bytes with these flags on the CPU it
// runs on; without `raw` the payload starts with struct generated. The XDP program does the same
// from BPF_PROG_TEST_RUN, with the packet as its context.
#include "generator.h"

#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <linux/bpf.h>

struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(max_entries, GENERATOR_CPUS);
  __type(key, __u32);
  __type(value, __u32);
} events SEC(".maps");

struct payload {
  char bytes[GENERATOR_PAYLOAD_BYTES];
};

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 4);
  __type(key, __u32);
  __type(value, struct payload);
} payloads SEC(".maps");

struct generator_shared shared = {};  // alone in .bss: the test maps that

static __always_inline void count(__u32 cpu, long result) {
  cpu &= GENERATOR_CPUS - 1;
  shared.last_result[cpu] = result;
  if (result == 0)
    shared.ok[cpu]++;
  else if (result == -28)
    shared.no_space[cpu]++;
  else if (result == -2)
    shared.no_slot[cpu]++;
  else
    shared.other[cpu]++;
}

static __always_inline int generate(void* ctx, __u64 size, __u64 flags, __u64 raw) {
  __u32 cpu = bpf_get_smp_processor_id();
  __u32 key = cpu & 3;
  struct payload* payload = bpf_map_lookup_elem(&payloads, &key);
  if (!payload) return 0;
  __u64 seq = shared.calls[cpu & (GENERATOR_CPUS - 1)]++;
  if (!raw && size >= sizeof(struct generated)) {
    struct generated* front = (void*)payload->bytes;
    front->seq = shared.counting ? shared.counted : seq;
    front->cpu = cpu;
    front->size = size;
    front->ktime_ns = bpf_ktime_get_ns();
  }
  if (shared.counting) shared.counted++;
  if (size > GENERATOR_PAYLOAD_BYTES) return 0;
  count(cpu, bpf_perf_event_output(ctx, &events, flags, payload->bytes, size));
  return 0;
}

SEC("raw_tp/sys_enter")
int on_syscall(struct bpf_raw_tracepoint_args* ctx) {
  if (ctx->args[1] != GENERATOR_SYSCALL) return 0;
  if (!shared.any_process && bpf_get_current_pid_tgid() >> 32 != shared.target_pid) return 0;
  struct pt_regs* regs = (void*)ctx->args[0];
  __u64 size = 0, flags = 0, raw = 0;
  bpf_probe_read_kernel(&size, sizeof size, &PT_REGS_PARM1_SYSCALL(regs));
  bpf_probe_read_kernel(&flags, sizeof flags, &PT_REGS_PARM2_SYSCALL(regs));
  bpf_probe_read_kernel(&raw, sizeof raw, &PT_REGS_PARM3_SYSCALL(regs));
  return generate(ctx, size, flags, raw);
}

SEC("xdp")
int on_packet(struct xdp_md* ctx) {
  generate(ctx, shared.xdp_size, shared.xdp_flags, shared.xdp_raw);
  return XDP_PASS;
}

char LICENSE[] SEC("license") = "GPL";
