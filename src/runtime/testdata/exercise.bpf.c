// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)
// Makes each of the runtime's calls once, as the tests ask.
/* In this order: bpf_helpers.h uses the types of bpf.h. */
/* clang-format off */
#include <linux/bpf.h>
#include <asm/ptrace.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
/* clang-format on */

#include "exercise.h"

struct exercise_results results = {};
__u64 initialised = 42;
const volatile __u32 factor = 3;

#define KEYED(map_type, entries) \
  __uint(type, map_type);        \
  __uint(max_entries, entries);  \
  __type(key, __u32);            \
  __type(value, __u64)

struct {
  KEYED(BPF_MAP_TYPE_HASH, 4);
} hash SEC(".maps");
struct {
  KEYED(BPF_MAP_TYPE_PERCPU_HASH, 4);
} percpu_hash SEC(".maps");
struct {
  KEYED(BPF_MAP_TYPE_ARRAY, 4);
} array SEC(".maps");
struct {
  KEYED(BPF_MAP_TYPE_PERCPU_ARRAY, 4);
} percpu_array SEC(".maps");
struct inner_map {
  KEYED(BPF_MAP_TYPE_HASH, 4);
};
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, 2);
  __type(key, __u32);
  __array(values, struct inner_map);
} maps_in_array SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
  __uint(max_entries, 2);
  __type(key, __u32);
  __array(values, struct inner_map);
} maps_in_hash SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_STACK_TRACE);
  __uint(max_entries, 16);
  __uint(key_size, 4);
  __uint(value_size, 8 * 8);
} stacks SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, __u64);
} storage SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
  __uint(max_entries, 8);
  __type(key, __u32);
  __type(value, __u32);
} events SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 4096);
} ring SEC(".maps");
struct {
  __uint(type, BPF_MAP_TYPE_PROG_ARRAY);
  __uint(max_entries, 2);
  __type(key, __u32);
  __type(value, __u32);
} programs SEC(".maps");

static __always_inline void* chosen(__u64 map) {
  __u32 zero = 0, name = 7;
  switch (map) {
    case EXERCISE_HASH:
      return &hash;
    case EXERCISE_PERCPU_HASH:
      return &percpu_hash;
    case EXERCISE_ARRAY:
      return &array;
    case EXERCISE_PERCPU_ARRAY:
      return &percpu_array;
    case EXERCISE_INNER:
      return bpf_map_lookup_elem(&maps_in_array, &zero);
    default:
      return bpf_map_lookup_elem(&maps_in_hash, &name);
  }
}

SEC("raw_tp/map")
int on_map(struct bpf_raw_tracepoint_args* ctx) {
  void* map = chosen(ctx->args[1]);
  __u32 key = ctx->args[2];
  __u64 value = ctx->args[3];
  results.result = -1;
  if (!map) return 0;
  if (ctx->args[0] == EXERCISE_UPDATE) {
    results.result = bpf_map_update_elem(map, &key, &value, ctx->args[4]);
  } else if (ctx->args[0] == EXERCISE_DELETE) {
    results.result = bpf_map_delete_elem(map, &key);
  } else {
    __u64* found = bpf_map_lookup_elem(map, &key);
    if (!found) return 0;
    if (ctx->args[0] == EXERCISE_ADD) __sync_fetch_and_add(found, value);
    results.result = 0;
    results.value = *found;
  }
  return 0;
}

/* What no verifier would let pass: writes behind its value. */
SEC("raw_tp/overrun")
int on_overrun(struct bpf_raw_tracepoint_args* ctx) {
  __u32 key = 1;
  volatile __u64* value = bpf_map_lookup_elem(chosen(ctx->args[0]), &key);
  if (value) value[1] = 7;
  return 0;
}

SEC("raw_tp/facts")
int on_facts(void* ctx) {
  struct exercise_facts* facts = &results.facts;
  facts->ktime_ns = bpf_ktime_get_ns();
  facts->boot_ns = bpf_ktime_get_boot_ns();
  facts->pid_tgid = bpf_get_current_pid_tgid();
  facts->uid_gid = bpf_get_current_uid_gid();
  facts->task = bpf_get_current_task();
  facts->task_btf = (__u64)bpf_get_current_task_btf();
  facts->cpu = bpf_get_smp_processor_id();
  facts->random = bpf_get_prandom_u32();
  results.result = bpf_get_current_comm(facts->comm, sizeof(facts->comm));
  bpf_printk("cpu %d factor %d", facts->cpu, factor);
  return 0;
}

SEC("tp_btf/storage")
int BPF_PROG(on_storage, struct task_struct* task, __u64 add, __u64 create) {
  __u64 first = 100;
  __u64* value =
      bpf_task_storage_get(&storage, task, &first, create ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
  results.result = value ? 0 : -1;
  if (value) results.value = *value += add;
  return 0;
}

SEC("tp_btf/forget")
int BPF_PROG(on_forget, struct task_struct* task) {
  results.result = bpf_task_storage_delete(&storage, task);
  return 0;
}

SEC("tp_btf/output")
int BPF_PROG(on_output, __u64 size, __u64 flags) {
  results.result = bpf_perf_event_output(ctx, &events, flags, results.bytes, size);
  return 0;
}
/* Others that output, to nest in one another. */
SEC("tp_btf/output2")
int BPF_PROG(on_output2, __u64 size, __u64 flags) {
  results.result = bpf_perf_event_output(ctx, &events, flags, results.bytes, size);
  return 0;
}

SEC("fentry/skb")
int BPF_PROG(on_skb_output, void* skb, __u64 flags) {
  results.result = bpf_skb_output(skb, &events, flags, results.bytes, 4);
  return 0;
}

SEC("fentry/xdp")
int BPF_PROG(on_xdp_output, void* xdp, __u64 flags) {
  results.result = bpf_xdp_output(xdp, &events, flags, results.bytes, 4);
  return 0;
}

SEC("tp_btf/counter")
int BPF_PROG(on_counter, __u64 flags, __u64 size) {
  struct bpf_perf_event_value value;
  results.result = bpf_perf_event_read_value(&events, flags, &value, size);
  results.value = size == sizeof(value) ? value.counter : 0;
  return 0;
}

SEC("tp_btf/ring")
int BPF_PROG(on_ring, __u64 number, __u64 keep) {
  __u64* record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
  results.result = record ? 0 : -1;
  if (!record) return 0;
  *record = number;
  bpf_get_smp_processor_id(); /* where an interrupt finds it reserved */
  if (keep)
    bpf_ringbuf_submit(record, 0);
  else
    bpf_ringbuf_discard(record, 0);
  return 0;
}

SEC("tp_btf/ring_output")
int BPF_PROG(on_ring_output, __u64 size, __u64 flags) {
  results.result = bpf_ringbuf_output(&ring, results.bytes, size, flags);
  results.value = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);
  return 0;
}

SEC("xdp")
int on_packet(struct xdp_md* ctx) {
  unsigned char* data = (void*)(long)ctx->data;
  unsigned char* end = (void*)(long)ctx->data_end;
  results.value = 0;
  for (__u32 i = 0; i < 64; ++i) {
    if (data + i >= end) break;
    results.value += data[i];
  }
  results.result = bpf_perf_event_output(ctx, &events, results.runs, results.bytes, 2);
  return XDP_PASS;
}

SEC("socket")
int on_socket(struct __sk_buff* skb) {
  results.result = bpf_skb_load_bytes(skb, results.runs, results.bytes, 4);
  return skb->len;
}

SEC("xdp")
int tail_caller(struct xdp_md* ctx) {
  bpf_tail_call(ctx, &programs, 0);
  return 1; /* the slot is empty */
}

SEC("xdp")
int tail_called(struct xdp_md* ctx) {
  results.runs++;
  bpf_tail_call(ctx, &programs, 1);
  return 7;
}

SEC("raw_tp/stack")
int on_stack(struct bpf_raw_tracepoint_args* ctx) {
  if (ctx->args[0] == 0)
    results.result = bpf_get_stackid(ctx, &stacks, ctx->args[1]);
  else if (ctx->args[0] == 1)
    results.result = bpf_get_stack(ctx, results.frames, sizeof(results.frames), ctx->args[1]);
  else
    results.result = bpf_get_task_stack((void*)ctx->args[2], results.frames, sizeof(results.frames),
                                        ctx->args[1]);
  return 0;
}

SEC("kprobe/read")
int BPF_KPROBE(on_read, __u64 how, const void* from, __u64 size) {
  if (size > sizeof(results.text)) return 0;
  if (how == 0) results.result = bpf_probe_read_kernel(results.text, size, from);
  if (how == 1) results.result = bpf_probe_read_user(results.text, size, from);
  if (how == 2) results.result = bpf_probe_read_kernel_str(results.text, size, from);
  if (how == 3) results.result = bpf_probe_read_user_str(results.text, size, from);
  if (how == 4) results.result = bpf_probe_read(results.text, size, from);
  if (how == 5) results.result = bpf_probe_read_str(results.text, size, from);
  return 0;
}

SEC("tp_btf/core")
int BPF_PROG(on_core, struct task_struct* task) {
  results.value = BPF_CORE_READ(task, parent, leaf, number);
  results.runs =
      BPF_CORE_READ_BITFIELD_PROBED(task, ready) * 10 + BPF_CORE_READ_BITFIELD(task, lazy);
  results.result = bpf_core_field_exists(task->leaf);
  return 0;
}

/* Programs that count how deep they nest. */
static __always_inline int nest(void) {
  results.runs++;
  results.depth++;
  if (results.depth > results.deepest) results.deepest = results.depth;
  bpf_get_smp_processor_id(); /* where it may be interrupted */
  results.depth--;
  return 0;
}
SEC("kprobe/nest")
int nest_kprobe(void* ctx) { return nest(); }
SEC("tracepoint/nest/nest")
int nest_tracepoint(void* ctx) { return nest(); }
SEC("raw_tp/nest")
int nest_raw(void* ctx) { return nest(); }
SEC("raw_tp/nest2")
int nest_raw2(void* ctx) { return nest(); }
SEC("xdp")
int nest_xdp(struct xdp_md* ctx) { return nest(); }

char LICENSE[] SEC("license") = "GPL";
