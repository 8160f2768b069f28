#include "probe/signature.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace dwell::probe {
namespace {

// Are the addresses there, in their order? The first of them lies above the saved frame.
bool stand_in_order(std::span<const uint64_t> ips, std::span<const uint64_t> stack) {
  auto at = stack.begin() + DWELL_SAVED_FRAME_WORDS;
  for (const uint64_t ip : ips) {
    at = std::find(at, stack.end(), ip);
    if (at == stack.end()) return false;
    ++at;
  }
  return true;
}

bool by_slot(const StackEvidence::Word& a, const StackEvidence::Word& b) { return a.slot < b.slot; }

}  // namespace

std::optional<StackEvidence> read_evidence(const dwell_kernel_stack_sample& sample,
                                           const SchedulerText& scheduler) {
  if (sample.count < 2 || sample.count > DWELL_SIGNATURE_PAIRS) return std::nullopt;
  // A stack that goes on beyond the sample: its return addresses may lie there, and what was found
  // be stale. The random offset is smaller another time.
  if (sample.words <= DWELL_SAVED_FRAME_WORDS || sample.words >= DWELL_SIGNATURE_WORDS)
    return std::nullopt;
  const std::span<const uint64_t> ips(sample.ips, sample.count - 1);  // without the outermost
  const std::span<const uint64_t> stack(sample.stack, sample.words);
  if (!scheduler.contains(stack[DWELL_SAVED_FRAME_WORDS]) || !stand_in_order(ips, stack))
    return std::nullopt;

  StackEvidence evidence = {.walked_hash = sample.walked_hash, .last = ips.back(), .words = {}};
  size_t top = stack.size() - 1;
  while (stack[top] != evidence.last) --top;
  for (size_t i = DWELL_SAVED_FRAME_WORDS; i <= top; ++i)
    if (scheduler.contains(stack[i]) || std::ranges::find(ips, stack[i]) != ips.end())
      evidence.words.push_back({static_cast<uint16_t>(i), stack[i]});
  return evidence;
}

bool same_stack(const StackEvidence& a, const StackEvidence& b) {
  if (a.walked_hash != b.walked_hash) return false;
  for (auto i = a.words.begin(), j = b.words.begin(); i != a.words.end() && j != b.words.end();) {
    if (i->slot == j->slot && i->value != j->value) return false;
    i->slot < j->slot ? ++i : ++j;
  }
  return true;
}

void confirm(StackEvidence& evidence, const StackEvidence& other) {
  std::vector<StackEvidence::Word> common;
  std::ranges::set_intersection(evidence.words, other.words, std::back_inserter(common), by_slot);
  // The true place of the last address is among those that remain: nothing above them matters.
  while (!common.empty() && common.back().value != evidence.last) common.pop_back();
  evidence.words = std::move(common);
}

std::optional<dwell_signature> conclude(const StackEvidence& evidence) {
  dwell_signature signature = {};
  signature.stack = signature.walked_hash = evidence.walked_hash;
  const size_t count = evidence.words.size();
  if (count == 0 || count > DWELL_SIGNATURE_PAIRS) return std::nullopt;
  for (size_t i = 0; i < count; ++i) {
    signature.slot[i] = evidence.words[i].slot;
    signature.word[i] = evidence.words[i].value;
  }
  signature.pairs = static_cast<uint32_t>(count);
  signature.words = signature.slot[count - 1] + 1u;
  return signature;
}

}  // namespace dwell::probe
