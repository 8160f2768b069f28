// BPF C compiled for this machine: stands in for libbpf's header of the same name. There is nothing
// to relocate, since the kernel's types are those of the program itself; reads are checked copies.
// Whether the pretended kernel has a type or field is asked by the text of the question:
// Machine::set_missing("task->__state"); everything else exists.
#ifndef __BPF_CORE_READ_H__
#define __BPF_CORE_READ_H__

#include <bpf/bpf_helpers.h>

#ifdef __cplusplus
extern "C" {
#endif

int dwell_core_exists(const char* what);

#define bpf_core_field_exists(...) dwell_core_exists(#__VA_ARGS__)
#define bpf_core_type_exists(type) dwell_core_exists(#type)
#define bpf_core_enum_value_exists(type, value) dwell_core_exists(#value)
#define bpf_core_enum_value(type, value) (value)
#define bpf_core_type_size(type) sizeof(type)
#define bpf_core_field_size(field) sizeof(field)
// By type and name only: an expression does not tell where its struct begins.
#define bpf_core_field_offset(type, field) __builtin_offsetof(type, field)

#define bpf_core_read(to, size, from) bpf_probe_read_kernel(to, size, (const void*)(from))
#define bpf_core_read_str(to, size, from) bpf_probe_read_kernel_str(to, size, (const void*)(from))
#define bpf_core_read_user(to, size, from) bpf_probe_read_user(to, size, (const void*)(from))

// The address is computed, not taken: `from` may be a null pointer.
#define DWELL_READ_1(from, a)                                                               \
  ({                                                                                        \
    __typeof__((from)->a) dwell_field;                                                      \
    bpf_probe_read_kernel(                                                                  \
        (void*)&dwell_field, sizeof(dwell_field),                                           \
        (const void*)((unsigned long)(from) + __builtin_offsetof(__typeof__(*(from)), a))); \
    dwell_field;                                                                            \
  })
#define DWELL_READ_2(from, a, ...) DWELL_READ_1(DWELL_READ_1(from, a), __VA_ARGS__)
#define DWELL_READ_3(from, a, ...) DWELL_READ_2(DWELL_READ_1(from, a), __VA_ARGS__)
#define DWELL_READ_4(from, a, ...) DWELL_READ_3(DWELL_READ_1(from, a), __VA_ARGS__)
#define DWELL_READ_5(from, a, ...) DWELL_READ_4(DWELL_READ_1(from, a), __VA_ARGS__)
#define DWELL_READ_6(from, a, ...) DWELL_READ_5(DWELL_READ_1(from, a), __VA_ARGS__)
#define BPF_CORE_READ(from, ...) \
  DWELL_CONCAT_TOKENS(DWELL_READ_, DWELL_COUNT_ARGUMENTS(__VA_ARGS__))(from, __VA_ARGS__)
#define BPF_PROBE_READ(from, ...) BPF_CORE_READ(from, __VA_ARGS__)
#define BPF_CORE_READ_INTO(to, from, ...)                         \
  ({                                                              \
    *(__typeof__(*(to))*)(to) = BPF_CORE_READ(from, __VA_ARGS__); \
    0;                                                            \
  })

#define BPF_CORE_READ_BITFIELD(from, field) ((unsigned long long)(from)->field)
#define BPF_CORE_READ_BITFIELD_PROBED(from, field)                                        \
  ({                                                                                      \
    __typeof__(*(from)) dwell_whole;                                                      \
    bpf_probe_read_kernel((void*)&dwell_whole, sizeof(dwell_whole), (const void*)(from)); \
    (unsigned long long)dwell_whole.field;                                                \
  })

#ifdef __cplusplus
}
#endif

#endif
