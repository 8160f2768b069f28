// Learns how to recognise a kernel stack by a few words of a sleeping thread's stack
// (docs/kernel-stacks.md).
//
// The first return address lies at a fixed place above the saved stack pointer. Where the next one
// lies follows from the size of the frame, which follows from the return address itself. So if
// every word at the slots of the true return addresses is equal, so is the whole stack. The walker
// leaves out scheduler functions, whose return addresses are therefore not known: all words that
// could be one are compared as well. A value that stands in several places is compared in all of
// them: the true slot is among them. The outermost address is left out: the kernel may shift its
// place at random (RANDOMIZE_KSTACK_OFFSET), and the function that returns to it is entered from
// one place only.
#pragma once

#include <optional>

#include "abi/off_cpu.h"

namespace dwell::probe {

struct SchedulerText {
  uint64_t start = 0;
  uint64_t end = 0;
  bool contains(uint64_t address) const { return address > start && address <= end; }
};

// Nothing if the sample does not determine the stack: a return address was not found, or there are
// too many words.
std::optional<dwell_signature> learn_signature(const dwell_kernel_stack_sample& sample,
                                               const SchedulerText& scheduler);

}  // namespace dwell::probe
