#include "probe/learner.h"

#include <bpf/bpf.h>

#include <algorithm>

namespace dwell::probe {
namespace {

constexpr int kSamplesNeeded = 3;
constexpr size_t kSuspectsMax = 64;  // per key: stacks seen too seldom to be learned are forgotten

}  // namespace

void SignatureLearner::publish(dwell_signature_key key, Key& state, const StackEvidence& evidence) {
  const auto signature = conclude(evidence);
  if (!signature) return;
  key.way = state.ways;
  if (bpf_map_update_elem(fd_, &key, &*signature, BPF_NOEXIST) == 0) state.ways++;
}

void SignatureLearner::learn(const std::vector<dwell_kernel_stack_sample>& samples) {
  for (const dwell_kernel_stack_sample& sample : samples) {
    Key& state = keys_[uint64_t{sample.key.tid} << 16 | sample.key.cause];
    if (state.ways >= DWELL_SIGNATURE_WAYS) continue;
    const auto evidence = read_evidence(sample, scheduler_);
    if (!evidence) continue;
    const auto known = std::ranges::find_if(state.suspects, [&](const Suspect& suspect) {
      return same_stack(suspect.evidence, *evidence);
    });
    if (known == state.suspects.end()) {
      if (state.suspects.size() >= kSuspectsMax) state.suspects.clear();
      state.suspects.push_back({*evidence});
      continue;
    }
    const size_t copies = known->evidence.copies.size();
    confirm(known->evidence, *evidence);
    // Published once there is enough evidence, and again should a later sample refute a copy.
    if (++known->samples == kSamplesNeeded ||
        (known->samples > kSamplesNeeded && known->evidence.copies.size() < copies))
      publish(sample.key, state, known->evidence);
  }
}

}  // namespace dwell::probe
