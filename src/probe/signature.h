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
// One sample cannot tell stale words from true ones; several samples of the same stack can, because
// only the true ones are sure to be in all of them. Used by SignatureLearner.
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

// What one sample says: every word that can be a return address of the stack, by its slot, up to
// the highest place of the last address.
struct StackEvidence {
  struct Word {
    uint16_t slot;
    uint64_t value;
    bool operator==(const Word&) const = default;
  };
  uint64_t walked_hash = 0;
  uint64_t last = 0;        // the last address that is compared
  std::vector<Word> words;  // ascending slots
};

// Nothing if the sample does not determine the stack: a return address was not found.
std::optional<StackEvidence> read_evidence(const dwell_kernel_stack_sample& sample,
                                           const SchedulerText& scheduler);

// Evidence of the same stack: the same walk, and no slot with two words. Two stacks that differ do
// so first at a slot where each has its own return address.
bool same_stack(const StackEvidence& a, const StackEvidence& b);

// Keeps of `evidence` what `other`, of the same stack, has as well: all return addresses, and those
// stale words that are always there.
void confirm(StackEvidence& evidence, const StackEvidence& other);

// The signature of what remains; nothing if that is too much.
std::optional<dwell_signature> conclude(const StackEvidence& evidence);

}  // namespace dwell::probe
