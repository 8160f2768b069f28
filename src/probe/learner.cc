#include "probe/learner.h"

#include <bpf/bpf.h>

#include <algorithm>
#include <cstring>

namespace dwell::probe {
namespace {

bool same(const dwell_signature& a, const dwell_signature& b) {
  return a.walked_hash == b.walked_hash && a.pairs == b.pairs &&
         std::memcmp(a.slot, b.slot, sizeof a.slot) == 0 &&
         std::memcmp(a.word, b.word, sizeof a.word) == 0;
}

}  // namespace

void SignatureLearner::learn(const std::vector<dwell_kernel_stack_sample>& samples) {
  for (const dwell_kernel_stack_sample& sample : samples) {
    auto& ways = ways_[uint64_t{sample.key.tid} << 16 | sample.key.cause];
    if (ways.size() >= DWELL_SIGNATURE_WAYS) continue;
    const auto signature = learn_signature(sample, scheduler_);
    if (!signature) continue;
    const auto known = [&](const Way& way) { return same(way.signature, *signature); };
    if (std::any_of(ways.begin(), ways.end(), known)) continue;
    dwell_signature_key key = sample.key;
    key.way = static_cast<uint16_t>(ways.size());
    if (bpf_map_update_elem(fd_, &key, &*signature, BPF_NOEXIST) == 0) ways.push_back({*signature});
  }
}

}  // namespace dwell::probe
