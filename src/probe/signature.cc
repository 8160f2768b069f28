#include "probe/signature.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>

namespace dwell::probe {
namespace {

bool append(dwell_signature& signature, uint32_t slot, uint64_t word) {
  if (signature.pairs == DWELL_SIGNATURE_PAIRS) return false;
  signature.slot[signature.pairs] = static_cast<uint16_t>(slot);
  signature.word[signature.pairs] = word;
  signature.pairs++;
  signature.words = slot + 1;
  return true;
}

// The addresses in their order, each at the lowest place above the one before. Returns the last
// place, 0 if one is missing.
uint32_t place_of_last(std::span<const uint64_t> ips, std::span<const uint64_t> stack) {
  size_t at = DWELL_SAVED_FRAME_WORDS;
  for (const uint64_t ip : ips) {
    while (at < stack.size() && stack[at] != ip) ++at;
    if (at == stack.size()) return 0;
    ++at;
  }
  return static_cast<uint32_t>(at - 1);
}

}  // namespace

std::optional<StackEvidence> read_evidence(const dwell_kernel_stack_sample& sample,
                                           const SchedulerText& scheduler) {
  if (sample.count < 2 || sample.count > DWELL_SIGNATURE_PAIRS) return std::nullopt;
  const std::span<const uint64_t> ips(sample.ips, sample.count - 1);  // without the outermost
  const std::span<const uint64_t> stack(sample.stack,
                                        std::min<uint32_t>(sample.words, DWELL_SIGNATURE_WORDS));
  const uint32_t last = place_of_last(ips, stack);
  if (last == 0 || !scheduler.contains(stack[DWELL_SAVED_FRAME_WORDS])) return std::nullopt;

  StackEvidence evidence;
  evidence.signature.stack = evidence.signature.walked_hash = sample.walked_hash;
  for (uint32_t i = DWELL_SAVED_FRAME_WORDS; i <= last; ++i) {
    const bool is_return_address = std::find(ips.begin(), ips.end(), stack[i]) != ips.end();
    if (!is_return_address && !scheduler.contains(stack[i])) continue;
    if (!append(evidence.signature, i, stack[i])) return std::nullopt;
  }
  for (uint32_t i = last + 1; i < stack.size(); ++i)
    if (stack[i] == ips.back()) evidence.copies.push_back(static_cast<uint16_t>(i));
  return evidence;
}

bool same_stack(const StackEvidence& a, const StackEvidence& b) {
  return std::memcmp(&a.signature, &b.signature, sizeof a.signature) == 0;
}

void confirm(StackEvidence& evidence, const StackEvidence& other) {
  std::vector<uint16_t> common;
  std::ranges::set_intersection(evidence.copies, other.copies, std::back_inserter(common));
  evidence.copies = std::move(common);
}

std::optional<dwell_signature> conclude(const StackEvidence& evidence) {
  dwell_signature signature = evidence.signature;
  const uint64_t last = signature.word[signature.pairs - 1];
  for (const uint16_t slot : evidence.copies)
    if (!append(signature, slot, last)) return std::nullopt;
  return signature;
}

}  // namespace dwell::probe
