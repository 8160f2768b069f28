// BPF C compiled for this machine: stands in for libbpf's header of the same name. Arguments of
// typed programs and of probed functions, as a program finds them in its context.
#ifndef __BPF_TRACING_H__
#define __BPF_TRACING_H__

#include <bpf/bpf_helpers.h>

// The registers as <asm/ptrace.h> has them in user space.
#if defined(__x86_64__)
#define PT_REGS_PARM1(regs) ((regs)->rdi)
#define PT_REGS_PARM2(regs) ((regs)->rsi)
#define PT_REGS_PARM3(regs) ((regs)->rdx)
#define PT_REGS_PARM4(regs) ((regs)->rcx)
#define PT_REGS_PARM4_SYSCALL(regs) ((regs)->r10)
#define PT_REGS_PARM5(regs) ((regs)->r8)
#define PT_REGS_RC(regs) ((regs)->rax)
#define PT_REGS_IP(regs) ((regs)->rip)
#define PT_REGS_SP(regs) ((regs)->rsp)
#define PT_REGS_FP(regs) ((regs)->rbp)
#elif defined(__aarch64__)
#define PT_REGS_PARM1(r) (((struct user_pt_regs*)(void*)(r))->regs[0])
#define PT_REGS_PARM2(r) (((struct user_pt_regs*)(void*)(r))->regs[1])
#define PT_REGS_PARM3(r) (((struct user_pt_regs*)(void*)(r))->regs[2])
#define PT_REGS_PARM4(r) (((struct user_pt_regs*)(void*)(r))->regs[3])
#define PT_REGS_PARM4_SYSCALL(r) PT_REGS_PARM4(r)
#define PT_REGS_PARM5(r) (((struct user_pt_regs*)(void*)(r))->regs[4])
#define PT_REGS_RC(r) PT_REGS_PARM1(r)
#define PT_REGS_IP(r) (((struct user_pt_regs*)(void*)(r))->pc)
#define PT_REGS_SP(r) (((struct user_pt_regs*)(void*)(r))->sp)
#define PT_REGS_FP(r) (((struct user_pt_regs*)(void*)(r))->regs[29])
#endif
#define PT_REGS_PARM1_SYSCALL(regs) PT_REGS_PARM1(regs)
#define PT_REGS_PARM2_SYSCALL(regs) PT_REGS_PARM2(regs)
#define PT_REGS_PARM3_SYSCALL(regs) PT_REGS_PARM3(regs)
#define PT_REGS_PARM5_SYSCALL(regs) PT_REGS_PARM5(regs)

// BPF_PROG(name, type a, type b): a function of the context that unpacks its words into arguments.
#define DWELL_WORDS_0(word)
#define DWELL_WORDS_1(word) , word(0)
#define DWELL_WORDS_2(word) DWELL_WORDS_1(word), word(1)
#define DWELL_WORDS_3(word) DWELL_WORDS_2(word), word(2)
#define DWELL_WORDS_4(word) DWELL_WORDS_3(word), word(3)
#define DWELL_WORDS_5(word) DWELL_WORDS_4(word), word(4)
#define DWELL_WORDS_6(word) DWELL_WORDS_5(word), word(5)
#define DWELL_SEVENTH_OF_(z, a, b, c, d, e, f, n, ...) n
#define DWELL_COUNT_OPTIONAL(...) DWELL_SEVENTH_OF_(0, ##__VA_ARGS__, 6, 5, 4, 3, 2, 1, 0)
#define DWELL_CONTEXT_WORD(i) ((void*)ctx[i])
#define DWELL_REGISTER_WORD(i) ((void*)DWELL_CONCAT_TOKENS(DWELL_REGISTER_, i))
#define DWELL_REGISTER_0 PT_REGS_PARM1(ctx)
#define DWELL_REGISTER_1 PT_REGS_PARM2(ctx)
#define DWELL_REGISTER_2 PT_REGS_PARM3(ctx)
#define DWELL_REGISTER_3 PT_REGS_PARM4(ctx)
#define DWELL_REGISTER_4 PT_REGS_PARM5(ctx)

#define DWELL_UNPACKED(name, context, word, ...)                                             \
  name(context ctx);                                                                         \
  static inline __attribute__((always_inline)) __typeof__(name(0)) dwell_unpacked_##name(    \
      context ctx, ##__VA_ARGS__);                                                           \
  __typeof__(name(0)) name(context ctx) {                                                    \
    _Pragma("GCC diagnostic push")                                                           \
        _Pragma("GCC diagnostic ignored \"-Wint-conversion\"") return dwell_unpacked_##name( \
            ctx DWELL_CONCAT_TOKENS(DWELL_WORDS_, DWELL_COUNT_OPTIONAL(__VA_ARGS__))(word)); \
    _Pragma("GCC diagnostic pop")                                                            \
  }                                                                                          \
  static inline __attribute__((always_inline)) __typeof__(name(0)) dwell_unpacked_##name(    \
      context ctx, ##__VA_ARGS__)

#define BPF_PROG(name, ...) \
  DWELL_UNPACKED(name, unsigned long long*, DWELL_CONTEXT_WORD, ##__VA_ARGS__)
#define BPF_KPROBE(name, ...) \
  DWELL_UNPACKED(name, struct pt_regs*, DWELL_REGISTER_WORD, ##__VA_ARGS__)

#endif
