#include "event_array/restartable_put.h"

#if defined(__x86_64__)

#include <sys/rseq.h>

namespace dwell {
inline namespace v0 {
namespace {

// The assembly below names these numbers.
static_assert(offsetof(PreparedPut, meta) == 0 && offsetof(PreparedPut, head) == 8);
static_assert(offsetof(PreparedPut, lost_total) == 16 && offsetof(PreparedPut, next_head) == 24);
static_assert(offsetof(PreparedPut, record) == 32 && offsetof(PreparedPut, record_last) == 40);
static_assert(offsetof(PreparedPut, header) == 48 && offsetof(PreparedPut, raw_size) == 56);
static_assert(offsetof(PreparedPut, data) == 64 && offsetof(PreparedPut, data_size) == 72);
static_assert(offsetof(PreparedPut, capture) == 80 && offsetof(PreparedPut, capture_size) == 88);
static_assert(offsetof(PreparedPut, report) == 96 && offsetof(PreparedPut, reported) == 104);
static_assert(offsetof(PreparedPut, report_next) == 112);
static_assert(offsetof(PreparedPut, report_head) == 120);
static_assert(offsetof(PreparedPut, lost_header) == 128 && offsetof(PreparedPut, lost_id) == 136);
static_assert(offsetof(PreparedPut, lost_count) == 144);
static_assert(offsetof(PreparedPut, lost_record) == 152);
static_assert(offsetof(ring::MetaPage, data_head) == 1024);
static_assert(offsetof(ring::MetaPage, extension) + offsetof(ring::MetaExtension, lost_total) ==
              2048);
static_assert(offsetof(ring::MetaPage, extension) + offsetof(ring::MetaExtension, report_head) ==
              2112);
static_assert(offsetof(ring::MetaExtension, report_new) == 72);
static_assert(offsetof(ring::MetaExtension, report_old) == 80);
static_assert(offsetof(struct rseq, cpu_id) == 4 && offsetof(struct rseq, rseq_cs) == 8);
static_assert(RSEQ_SIG == 0x53053053);

struct rseq* own_rseq() {
  return reinterpret_cast<struct rseq*>(static_cast<char*>(__builtin_thread_pointer()) +
                                        __rseq_offset);
}

}  // namespace

bool restartable_sequences_work() {
  static const bool works = [] {
    if (__rseq_size == 0) return false;
    const uint32_t cpu = __atomic_load_n(&own_rseq()->cpu_id, __ATOMIC_RELAXED);
    if (static_cast<int32_t>(cpu) < 0) return false;
    // A trial put into a page of our own.
    alignas(64) static ring::MetaPage meta;
    alignas(8) std::byte record[16];
    PreparedPut put = {};
    put.meta = &meta;
    put.next_head = sizeof record;
    put.record = record;
    put.record_last = record + 8;
    for (int tries = 0; tries < 100; ++tries)
      if (restartable_put(restartable_cpu(), put) == PutStep::kDone) return true;
    return false;
  }();
  return works;
}

uint32_t restartable_cpu() { return __atomic_load_n(&own_rseq()->cpu_id_start, __ATOMIC_RELAXED); }

// Copies r10 bytes from rsi to rdi (both advance); clobbers r10, r11, rcx, xmm0. `n` makes the
// labels unique. Whole 16-byte pieces first; from 256 bytes on the string move is faster.
#define DWELL_COPY(n)          \
  "cmpq $256, %%r10\n\t"       \
  "jb 2" n                     \
  "f\n\t"                      \
  "movq %%r10, %%rcx\n\t"      \
  "rep movsb\n\t"              \
  "jmp 8" n                    \
  "f\n"                        \
  "2" n                        \
  ":\n\t"                      \
  "subq $16, %%r10\n\t"        \
  "jb 3" n                     \
  "f\n\t"                      \
  "movdqu (%%rsi), %%xmm0\n\t" \
  "movdqu %%xmm0, (%%rdi)\n\t" \
  "addq $16, %%rsi\n\t"        \
  "addq $16, %%rdi\n\t"        \
  "jmp 2" n                    \
  "b\n"                        \
  "3" n                        \
  ":\n\t"                      \
  "testq $8, %%r10\n\t"        \
  "jz 4" n                     \
  "f\n\t"                      \
  "movq (%%rsi), %%r11\n\t"    \
  "movq %%r11, (%%rdi)\n\t"    \
  "addq $8, %%rsi\n\t"         \
  "addq $8, %%rdi\n"           \
  "4" n                        \
  ":\n\t"                      \
  "testq $4, %%r10\n\t"        \
  "jz 5" n                     \
  "f\n\t"                      \
  "movl (%%rsi), %%r11d\n\t"   \
  "movl %%r11d, (%%rdi)\n\t"   \
  "addq $4, %%rsi\n\t"         \
  "addq $4, %%rdi\n"           \
  "5" n                        \
  ":\n\t"                      \
  "testq $2, %%r10\n\t"        \
  "jz 6" n                     \
  "f\n\t"                      \
  "movw (%%rsi), %%r11w\n\t"   \
  "movw %%r11w, (%%rdi)\n\t"   \
  "addq $2, %%rsi\n\t"         \
  "addq $2, %%rdi\n"           \
  "6" n                        \
  ":\n\t"                      \
  "testq $1, %%r10\n\t"        \
  "jz 8" n                     \
  "f\n\t"                      \
  "movb (%%rsi), %%r11b\n\t"   \
  "movb %%r11b, (%%rdi)\n\t"   \
  "incq %%rsi\n\t"             \
  "incq %%rdi\n"               \
  "8" n ":\n\t"

// r8 holds the metadata page. The kernel aborts by changing the instruction pointer alone, so that
// every other register is as the sequence left it; it leaves by jumps, with nothing to undo.
PutStep restartable_put(uint32_t cpu, const PreparedPut& put) {
  int status = static_cast<int>(PutStep::kAborted);
  struct rseq* area = own_rseq();
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
      "cmpl %[cpu], 4(%[area])\n\t"
      "jne 15f\n\t"
      "movl %[changed], %[status]\n\t"
      "movq 0(%[put]), %%r8\n\t"
      "movq 8(%[put]), %%r10\n\t"
      "cmpq %%r10, 1024(%%r8)\n\t"
      "jne 15f\n\t"
      "movq 16(%[put]), %%r10\n\t"
      "cmpq %%r10, 2048(%%r8)\n\t"
      "jne 15f\n\t"
      "cmpq $0, 96(%[put])\n\t"
      "je 16f\n\t"
      // Four stores that change nothing until head is stored (ring/loss_report.h).
      "movq 104(%[put]), %%r10\n\t"
      "movq %%r10, 2128(%%r8)\n\t"
      "movq %%r10, 2120(%%r8)\n\t"
      "movq 120(%[put]), %%r10\n\t"
      "movq %%r10, 2112(%%r8)\n\t"
      "movq 112(%[put]), %%r10\n\t"
      "movq %%r10, 2120(%%r8)\n\t"
      "cmpq $1, 96(%[put])\n\t"
      "jne 16f\n\t"
      "movq 152(%[put]), %%rdi\n\t"
      "movq 128(%[put]), %%r10\n\t"
      "movq %%r10, (%%rdi)\n\t"
      "movq 136(%[put]), %%r10\n\t"
      "movq %%r10, 8(%%rdi)\n\t"
      "movq 144(%[put]), %%r10\n\t"
      "movq %%r10, 16(%%rdi)\n"
      "16:\n\t"
      // Padding, header, raw_size, payload.
      "movq 40(%[put]), %%rdi\n\t"
      "movq $0, (%%rdi)\n\t"
      "movq 32(%[put]), %%rdi\n\t"
      "movq 48(%[put]), %%r10\n\t"
      "movq %%r10, (%%rdi)\n\t"
      "movl 56(%[put]), %%r10d\n\t"
      "movl %%r10d, 8(%%rdi)\n\t"
      "addq $12, %%rdi\n\t"
      "movq 64(%[put]), %%rsi\n\t"
      "movq 72(%[put]), %%r10\n\t"  //
      DWELL_COPY("1")               //
      "movq 88(%[put]), %%r10\n\t"
      "testq %%r10, %%r10\n\t"
      "jz 17f\n\t"
      "movq 80(%[put]), %%rsi\n\t"  //
      DWELL_COPY("2")               //
      "17:\n\t"
      "movl %[done], %[status]\n\t"
      "movq 24(%[put]), %%r10\n\t"
      "movq %%r10, 1024(%%r8)\n"  // the commit
      "13:\n\t"
      "jmp 15f\n\t"
      // The signature in front of the abort address, as an instruction that disassembles.
      ".byte 0x0f, 0xb9, 0x3d\n\t"
      ".long 0x53053053\n"
      "14:\n\t"
      "movl %[aborted], %[status]\n"
      "15:\n\t"
      : [status] "+&r"(status)
      : [cpu] "r"(cpu), [put] "r"(&put), [area] "r"(area),
        [moved] "i"(static_cast<int>(PutStep::kMoved)),
        [changed] "i"(static_cast<int>(PutStep::kChanged)),
        [done] "i"(static_cast<int>(PutStep::kDone)),
        [aborted] "i"(static_cast<int>(PutStep::kAborted))
      : "memory", "cc", "rcx", "rsi", "rdi", "r8", "r10", "r11", "xmm0");
  return static_cast<PutStep>(status);
}

}  // namespace v0
}  // namespace dwell

#else  // other architectures use the lock

namespace dwell {
inline namespace v0 {

bool restartable_sequences_work() { return false; }
uint32_t restartable_cpu() { return 0; }
PutStep restartable_put(uint32_t, const PreparedPut&) { return PutStep::kMoved; }

}  // namespace v0
}  // namespace dwell

#endif
