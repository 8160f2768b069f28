// BPF C compiled for this machine: stands in for libbpf's header of the same name. The calls lead
// to src/runtime instead of the kernel (as dwell_bpf_..., since libbpf's user-space functions have
// some of the same names). A map's declaration keeps its form; its numbers come from the BPF
// object, and the runtime stores which map it is in the variable's first word.
#ifndef __BPF_HELPERS__
#define __BPF_HELPERS__

#include <linux/bpf.h>
#include <linux/types.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef __cplusplus  // C++ looks at a program's types only, and has these names for itself
#define __uint(name, val) int(*name)[val]
#define __type(name, val) __typeof__(val)* name
#define __array(name, val) __typeof__(val)* name[]

#define SEC(name) __attribute__((used))
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#ifndef __noinline
#define __noinline __attribute__((noinline))
#endif
#ifndef __weak
#define __weak __attribute__((weak))
#endif
#define __hidden __attribute__((visibility("hidden")))
#define barrier() __asm__ volatile("" ::: "memory")
#define barrier_var(var) __asm__ volatile("" : "+r"(var))
#endif
#ifndef container_of
#define container_of(pointer, type, member) \
  ((type*)(void*)((char*)(pointer) - __builtin_offsetof(type, member)))
#endif
#ifndef KERNEL_VERSION
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + ((c) > 255 ? 255 : (c)))
#endif
#define DWELL_CONCAT_TOKENS_(a, b) a##b
#define DWELL_CONCAT_TOKENS(a, b) DWELL_CONCAT_TOKENS_(a, b)
#define DWELL_TENTH_(a, b, c, d, e, f, g, h, i, j, ...) j
#define DWELL_COUNT_ARGUMENTS(...) DWELL_TENTH_(__VA_ARGS__, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)

enum libbpf_pin_type { LIBBPF_PIN_NONE, LIBBPF_PIN_BY_NAME };

#define DWELL_CALL(name) __asm__("dwell_" #name)

// Maps.
void* bpf_map_lookup_elem(void* map, const void* key) DWELL_CALL(bpf_map_lookup_elem);
long bpf_map_update_elem(void* map, const void* key, const void* value, __u64 flags)
    DWELL_CALL(bpf_map_update_elem);
long bpf_map_delete_elem(void* map, const void* key) DWELL_CALL(bpf_map_delete_elem);
void* bpf_task_storage_get(void* map, void* task, void* value, __u64 flags)
    DWELL_CALL(bpf_task_storage_get);
long bpf_task_storage_delete(void* map, void* task) DWELL_CALL(bpf_task_storage_delete);

// Output.
long bpf_perf_event_output(void* ctx, void* map, __u64 flags, void* data, __u64 size)
    DWELL_CALL(bpf_perf_event_output);
long bpf_skb_output(void* skb, void* map, __u64 flags, void* data, __u64 size)
    DWELL_CALL(bpf_skb_output);
long bpf_xdp_output(void* xdp, void* map, __u64 flags, void* data, __u64 size)
    DWELL_CALL(bpf_xdp_output);
long bpf_ringbuf_output(void* map, void* data, __u64 size, __u64 flags)
    DWELL_CALL(bpf_ringbuf_output);
void* bpf_ringbuf_reserve(void* map, __u64 size, __u64 flags) DWELL_CALL(bpf_ringbuf_reserve);
void bpf_ringbuf_submit(void* data, __u64 flags) DWELL_CALL(bpf_ringbuf_submit);
void bpf_ringbuf_discard(void* data, __u64 flags) DWELL_CALL(bpf_ringbuf_discard);
__u64 bpf_ringbuf_query(void* map, __u64 flags) DWELL_CALL(bpf_ringbuf_query);
long bpf_seq_write(void* seq, const void* data, __u32 len) DWELL_CALL(bpf_seq_write);
long bpf_trace_printk(const char* format, __u32 format_size, ...) DWELL_CALL(bpf_trace_printk);

// Time, place, task.
__u64 bpf_ktime_get_ns(void) DWELL_CALL(bpf_ktime_get_ns);
__u64 bpf_ktime_get_boot_ns(void) DWELL_CALL(bpf_ktime_get_boot_ns);
__u32 bpf_get_smp_processor_id(void) DWELL_CALL(bpf_get_smp_processor_id);
__u32 bpf_get_prandom_u32(void) DWELL_CALL(bpf_get_prandom_u32);
__u64 bpf_get_current_pid_tgid(void) DWELL_CALL(bpf_get_current_pid_tgid);
__u64 bpf_get_current_uid_gid(void) DWELL_CALL(bpf_get_current_uid_gid);
long bpf_get_current_comm(void* buffer, __u32 size) DWELL_CALL(bpf_get_current_comm);
__u64 bpf_get_current_task(void) DWELL_CALL(bpf_get_current_task);
void* bpf_get_current_task_btf(void) DWELL_CALL(bpf_get_current_task_btf);
long bpf_task_pt_regs(void* task) DWELL_CALL(bpf_task_pt_regs);

// Memory of the kernel and of programs.
long bpf_probe_read(void* to, __u32 size, const void* from) DWELL_CALL(bpf_probe_read);
long bpf_probe_read_kernel(void* to, __u32 size, const void* from)
    DWELL_CALL(bpf_probe_read_kernel);
long bpf_probe_read_user(void* to, __u32 size, const void* from) DWELL_CALL(bpf_probe_read_user);
long bpf_probe_read_str(void* to, __u32 size, const void* from) DWELL_CALL(bpf_probe_read_str);
long bpf_probe_read_kernel_str(void* to, __u32 size, const void* from)
    DWELL_CALL(bpf_probe_read_kernel_str);
long bpf_probe_read_user_str(void* to, __u32 size, const void* from)
    DWELL_CALL(bpf_probe_read_user_str);
long bpf_copy_from_user_task(void* to, __u32 size, const void* from, void* task, __u64 flags)
    DWELL_CALL(bpf_copy_from_user_task);
long bpf_skb_load_bytes(const void* skb, __u32 offset, void* to, __u32 size)
    DWELL_CALL(bpf_skb_load_bytes);

// Stacks and counters.
long bpf_get_stackid(void* ctx, void* map, __u64 flags) DWELL_CALL(bpf_get_stackid);
long bpf_get_stack(void* ctx, void* buffer, __u32 size, __u64 flags) DWELL_CALL(bpf_get_stack);
long bpf_get_task_stack(void* task, void* buffer, __u32 size, __u64 flags)
    DWELL_CALL(bpf_get_task_stack);
long bpf_perf_event_read_value(void* map, __u64 flags, struct bpf_perf_event_value* value,
                               __u32 size) DWELL_CALL(bpf_perf_event_read_value);

// Does not return if the program runs.
long bpf_tail_call(void* ctx, void* programs, __u32 index) DWELL_CALL(bpf_tail_call);

// Calls `step(0, context)`, `step(1, context)`, ... until one returns 1; how many it called.
static inline long bpf_loop(__u32 turns, void* step, void* context, __u64 flags) {
  long (*call)(__u32, void*) = (long (*)(__u32, void*))step;
  __u32 done = 0;
  (void)flags;
  while (done < turns)
    if (call(done++, context) != 0) break;
  return done;
}

#define bpf_printk(format, ...)                                          \
  ({                                                                     \
    static const char dwell_format[] = format;                           \
    bpf_trace_printk(dwell_format, sizeof(dwell_format), ##__VA_ARGS__); \
  })

#ifdef __cplusplus
}
#endif

#endif
