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
//
// The last address that is compared has the most stale copies, above its true slot. One sample
// cannot tell them from it; several samples of the same stack can, because only the true slot is in
// all of them.
#pragma once

#include <optional>
#include <vector>

#include "abi/off_cpu.h"

namespace dwell::probe {

struct SchedulerText {
  uint64_t start = 0;
  uint64_t end = 0;
  bool contains(uint64_t address) const { return address > start && address <= end; }
};

// What one sample says: `signature` up to the first place of the last address, and further places
// of its value.
struct StackEvidence {
  dwell_signature signature = {};
  std::vector<uint16_t> copies;  // slots, ascending
};

// Nothing if the sample does not determine the stack: a return address was not found, or there are
// too many words.
std::optional<StackEvidence> read_evidence(const dwell_kernel_stack_sample& sample,
                                           const SchedulerText& scheduler);

// Evidence of the same stack: all but the copies is equal.
bool same_stack(const StackEvidence& a, const StackEvidence& b);

// Keeps of `evidence` the copies that `other` has as well.
void confirm(StackEvidence& evidence, const StackEvidence& other);

// The signature with the remaining copies in it; nothing if they are too many.
std::optional<dwell_signature> conclude(const StackEvidence& evidence);

}  // namespace dwell::probe
