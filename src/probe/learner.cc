#include "probe/learner.h"

#include <bpf/bpf.h>

#include <algorithm>

namespace dwell::probe {
namespace {

constexpr int kSamplesNeeded = 3;
constexpr size_t kSuspectsMax = 64;  // per key: stacks seen too seldom to be learned are forgotten
constexpr size_t kKeysMax = 4096;    // the probe's map holds no more signatures than that

uint64_t id_of(const dwell_signature_key& key) { return uint64_t{key.tid} << 16 | key.cause; }

}  // namespace

SignatureLearner::Insert insert_into_map(int signatures_fd) {
  return [signatures_fd](const dwell_signature_key& key, const dwell_signature& signature) {
    return bpf_map_update_elem(signatures_fd, &key, &signature, BPF_NOEXIST) == 0;
  };
}

void SignatureLearner::take(const dwell_kernel_stack_sample& sample) {
  const uint64_t id = id_of(sample.key);
  if (keys_.size() >= kKeysMax && !keys_.contains(id)) return;
  Key& state = keys_[id];
  if (state.ways >= DWELL_SIGNATURE_WAYS) return;
  const auto evidence = read_evidence(sample, scheduler_);
  if (!evidence) return;
  const auto known = std::ranges::find_if(state.suspects, [&](const Suspect& suspect) {
    return same_stack(suspect.evidence, *evidence);
  });
  if (known == state.suspects.end()) {
    if (state.suspects.size() >= kSuspectsMax) state.suspects.clear();
    state.suspects.push_back({*evidence});
    return;
  }
  const size_t words = known->evidence.words.size();
  confirm(known->evidence, *evidence);
  known->samples++;
  if (known->evidence.words.size() < words) known->is_news = true;
}

void SignatureLearner::publish_news(dwell_signature_key key) {
  const auto found = keys_.find(id_of(key));
  if (found == keys_.end()) return;
  Key& state = found->second;
  for (Suspect& suspect : state.suspects) {
    if (!suspect.is_news || suspect.samples < kSamplesNeeded) continue;
    const auto signature = conclude(suspect.evidence);
    key.way = state.ways;
    if (!signature || !insert_(key, *signature)) continue;
    suspect.is_news = false;
    if (++state.ways == DWELL_SIGNATURE_WAYS) break;
  }
  if (state.ways == DWELL_SIGNATURE_WAYS) state.suspects = {};
}

void SignatureLearner::learn(const std::vector<dwell_kernel_stack_sample>& samples) {
  for (const dwell_kernel_stack_sample& sample : samples) take(sample);
  // All of them first: each way that a key has is used up for good.
  for (const dwell_kernel_stack_sample& sample : samples) publish_news(sample.key);
}

}  // namespace dwell::probe
