// The restartable sequence for x86-64. Included by restartable_put.h alone.
#pragma once

#include <sys/rseq.h>

#include "event_array/prepared_put.h"

namespace dwell {
inline namespace v0 {

// The assembly below names these numbers.
static_assert(offsetof(PutExtras, capture) == 0 && offsetof(PutExtras, capture_size) == 8);
static_assert(offsetof(PutExtras, report) == 16 && offsetof(PutExtras, reported) == 24);
static_assert(offsetof(PutExtras, report_next) == 32 && offsetof(PutExtras, report_head) == 40);
static_assert(offsetof(PutExtras, lost_header) == 48 && offsetof(PutExtras, lost_id) == 56);
static_assert(offsetof(PutExtras, lost_count) == 64 && offsetof(PutExtras, lost_record) == 72);
static_assert(offsetof(ring::MetaPage, data_head) == 1024);
static_assert(offsetof(ring::MetaPage, extension) + offsetof(ring::MetaExtension, lost_total) ==
              2048);
static_assert(offsetof(ring::MetaPage, extension) + offsetof(ring::MetaExtension, report_head) ==
              2112);
static_assert(offsetof(ring::MetaExtension, report_new) == 72);
static_assert(offsetof(ring::MetaExtension, report_old) == 80);
static_assert(ring::kRawPrefix == 12);
static_assert(offsetof(struct rseq, cpu_id) == 4 && offsetof(struct rseq, rseq_cs) == 8);
static_assert(RSEQ_SIG == 0x53053053);

inline struct rseq* own_rseq() {
  return reinterpret_cast<struct rseq*>(static_cast<char*>(__builtin_thread_pointer()) +
                                        __rseq_offset);
}

inline uint32_t restartable_cpu() {
  return __atomic_load_n(&own_rseq()->cpu_id_start, __ATOMIC_RELAXED);
}

// Copies rcx bytes from rsi to rdi, and leaves rdi behind them; clobbers rsi, rcx, r10, r11, xmm0,
// xmm1. `n` makes the labels unique. The last piece overlaps the one before, so that no length
// needs more than one loop; from 512 bytes on the string move is faster.
#define DWELL_COPY(n)                   \
  "cmpq $512, %%rcx\n\t"                \
  "jae 2" n                             \
  "f\n\t"                               \
  "cmpq $16, %%rcx\n\t"                 \
  "jb 4" n                              \
  "f\n\t"                               \
  "movdqu -16(%%rsi,%%rcx), %%xmm1\n\t" \
  "leaq -16(%%rdi,%%rcx), %%r10\n\t"    \
  "xorl %%r11d, %%r11d\n\t"             \
  "subq $16, %%rcx\n\t"                 \
  "jz 3" n                              \
  "f\n\t"                               \
  "1" n                                 \
  ":\n\t"                               \
  "movdqu (%%rsi,%%r11), %%xmm0\n\t"    \
  "movdqu %%xmm0, (%%rdi,%%r11)\n\t"    \
  "addq $16, %%r11\n\t"                 \
  "cmpq %%rcx, %%r11\n\t"               \
  "jb 1" n                              \
  "b\n\t"                               \
  "3" n                                 \
  ":\n\t"                               \
  "movdqu %%xmm1, (%%r10)\n\t"          \
  "leaq 16(%%r10), %%rdi\n\t"           \
  "jmp 8" n                             \
  "f\n\t"                               \
  "2" n                                 \
  ":\n\t"                               \
  "rep movsb\n\t"                       \
  "jmp 8" n                             \
  "f\n\t"                               \
  "4" n                                 \
  ":\n\t"                               \
  "leaq (%%rdi,%%rcx), %%r10\n\t"       \
  "cmpq $8, %%rcx\n\t"                  \
  "jb 5" n                              \
  "f\n\t"                               \
  "movq -8(%%rsi,%%rcx), %%r11\n\t"     \
  "movq (%%rsi), %%rsi\n\t"             \
  "movq %%rsi, (%%rdi)\n\t"             \
  "movq %%r11, -8(%%r10)\n\t"           \
  "jmp 7" n                             \
  "f\n\t"                               \
  "5" n                                 \
  ":\n\t"                               \
  "cmpq $4, %%rcx\n\t"                  \
  "jb 6" n                              \
  "f\n\t"                               \
  "movl -4(%%rsi,%%rcx), %%r11d\n\t"    \
  "movl (%%rsi), %%esi\n\t"             \
  "movl %%esi, (%%rdi)\n\t"             \
  "movl %%r11d, -4(%%r10)\n\t"          \
  "jmp 7" n                             \
  "f\n\t"                               \
  "6" n                                 \
  ":\n\t"                               \
  "testq %%rcx, %%rcx\n\t"              \
  "jz 7" n                              \
  "f\n\t"                               \
  "movb -1(%%rsi,%%rcx), %%r11b\n\t"    \
  "movb %%r11b, -1(%%r10)\n\t"          \
  "shrq $1, %%rcx\n\t"                  \
  "movb (%%rsi,%%rcx), %%r11b\n\t"      \
  "movb %%r11b, (%%rdi,%%rcx)\n\t"      \
  "movb (%%rsi), %%r11b\n\t"            \
  "movb %%r11b, (%%rdi)\n\t"            \
  "7" n                                 \
  ":\n\t"                               \
  "movq %%r10, %%rdi\n\t"               \
  "8" n ":\n\t"

// The kernel aborts by changing the instruction pointer alone, so that every other register is as
// the sequence left it; it leaves by jumps, with nothing to undo.
[[gnu::always_inline]] inline PutStep restartable_put(uint32_t cpu, const PreparedPut& put) {
  int status = static_cast<int>(PutStep::kAborted);
  std::byte* record = put.record;
  const std::byte* data = put.data;
  uint64_t size = put.data_size;
  __asm__ __volatile__(
      // The descriptor of the sequence: version and flags, start, length, where to go on abort.
      ".pushsection __rseq_cs, \"aw\"\n\t"
      ".balign 32\n"
      "11:\n\t"
      ".long 0, 0\n\t"
      ".quad 12f, (13f - 12f), 14f\n\t"
      ".popsection\n\t"
      "leaq 11b(%%rip), %%r10\n\t"
      "movq %%r10, 8(%[area])\n"
      "12:\n\t"
      "movl %[moved], %[status]\n\t"
      "movl %[cpu], %%r10d\n\t"
      "cmpl %%r10d, 4(%[area])\n\t"
      "jne 15f\n\t"
      "movl %[changed], %[status]\n\t"
      "cmpq %[head], 1024(%[meta])\n\t"
      "jne 15f\n\t"
      "movq %[lost], %%r10\n\t"
      "cmpq %%r10, 2048(%[meta])\n\t"
      "jne 15f\n\t"
      "testq %[extras], %[extras]\n\t"
      "jz 16f\n\t"
      "cmpq $0, 16(%[extras])\n\t"
      "je 16f\n\t"
      // Four stores that change nothing until head is stored (ring/loss_report.h).
      "movq 24(%[extras]), %%r10\n\t"
      "movq %%r10, 2128(%[meta])\n\t"
      "movq %%r10, 2120(%[meta])\n\t"
      "movq 40(%[extras]), %%r10\n\t"
      "movq %%r10, 2112(%[meta])\n\t"
      "movq 32(%[extras]), %%r10\n\t"
      "movq %%r10, 2120(%[meta])\n\t"
      "cmpq $1, 16(%[extras])\n\t"
      "jne 16f\n\t"
      "movq 72(%[extras]), %%r11\n\t"
      "movq 48(%[extras]), %%r10\n\t"
      "movq %%r10, (%%r11)\n\t"
      "movq 56(%[extras]), %%r10\n\t"
      "movq %%r10, 8(%%r11)\n\t"
      "movq 64(%[extras]), %%r10\n\t"
      "movq %%r10, 16(%%r11)\n"
      "16:\n\t"
      // Padding, header, raw_size, payload.
      "movq $0, -8(%%rdi,%[bytes])\n\t"
      "movq %[header], %%r10\n\t"
      "movq %%r10, (%%rdi)\n\t"
      "leal -12(%[bytes]), %%r10d\n\t"
      "movl %%r10d, 8(%%rdi)\n\t"
      "addq $12, %%rdi\n\t"  //
      DWELL_COPY("1")        //
      "testq %[extras], %[extras]\n\t"
      "jz 17f\n\t"
      "movq 8(%[extras]), %%rcx\n\t"
      "movq 0(%[extras]), %%rsi\n\t"  //
      DWELL_COPY("2")                 //
      "17:\n\t"
      "movl %[done], %[status]\n\t"
      "movq %[next_head], 1024(%[meta])\n"  // the commit
      "13:\n\t"
      "jmp 15f\n\t"
      // The signature in front of the abort address, as an instruction that disassembles.
      ".byte 0x0f, 0xb9, 0x3d\n\t"
      ".long 0x53053053\n"
      "14:\n\t"
      "movl %[aborted], %[status]\n"
      "15:\n\t"
      : [status] "+&r"(status), "+&D"(record), "+&S"(data), "+&c"(size)
      : [area] "r"(own_rseq()), [meta] "r"(put.meta), [head] "r"(put.head),
        [next_head] "r"(put.next_head), [bytes] "r"(put.record_bytes), [extras] "r"(put.extras),
        [cpu] "rm"(cpu), [lost] "rm"(put.lost_total), [header] "rm"(put.header),
        [moved] "i"(static_cast<int>(PutStep::kMoved)),
        [changed] "i"(static_cast<int>(PutStep::kChanged)),
        [done] "i"(static_cast<int>(PutStep::kDone)),
        [aborted] "i"(static_cast<int>(PutStep::kAborted))
      : "memory", "cc", "r10", "r11", "xmm0", "xmm1");
  return static_cast<PutStep>(status);
}

#undef DWELL_COPY

}  // namespace v0
}  // namespace dwell
