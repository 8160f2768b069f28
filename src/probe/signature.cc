#include "probe/signature.h"

#include <algorithm>
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

}  // namespace

std::optional<dwell_signature> learn_signature(const dwell_kernel_stack_sample& sample,
                                               const SchedulerText& scheduler) {
  if (sample.count < 2 || sample.count > DWELL_SIGNATURE_PAIRS) return std::nullopt;
  const uint32_t words = std::min<uint32_t>(sample.words, DWELL_SIGNATURE_WORDS);
  const std::span<const uint64_t> ips(sample.ips, sample.count - 1);  // without the outermost
  const std::span<const uint64_t> stack(sample.stack, words);

  // The walker's addresses in order, each at the lowest place above the one before: lower bounds of
  // the true slots.
  uint32_t first_slot = 0, last_slot = 0;
  for (uint32_t at = DWELL_SAVED_FRAME_WORDS; const uint64_t ip : ips) {
    const auto found = std::find(stack.begin() + std::min(at, words), stack.end(), ip);
    if (found == stack.end()) return std::nullopt;
    last_slot = static_cast<uint32_t>(found - stack.begin());
    if (first_slot == 0) first_slot = last_slot;
    at = last_slot + 1;
  }
  // The true slot of the last one may be a later copy of the same value.
  for (uint32_t i = last_slot + 1; i < words; ++i)
    if (stack[i] == ips.back()) last_slot = i;

  dwell_signature signature = {};
  signature.stack = signature.walked_hash = sample.walked_hash;
  if (!scheduler.contains(stack[DWELL_SAVED_FRAME_WORDS])) return std::nullopt;
  for (uint32_t i = DWELL_SAVED_FRAME_WORDS; i <= last_slot; ++i) {
    const bool known = std::find(ips.begin(), ips.end(), stack[i]) != ips.end();
    if (!known && !scheduler.contains(stack[i])) continue;
    if (!append(signature, i, stack[i])) return std::nullopt;
  }
  return signature;
}

}  // namespace dwell::probe
