// Turns samples into signatures in the probe's map. The probe reads the ways of a key one after the
// other up to the first that is missing, so each signature goes to the next free way. Called by the
// recording loop.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "abi/off_cpu.h"
#include "probe/signature.h"

namespace dwell::probe {

class SignatureLearner {
 public:
  // Puts a signature where the probe looks for it. False: there is no room, or one is there
  // already.
  using Insert = std::function<bool(const dwell_signature_key&, const dwell_signature&)>;

  SignatureLearner(Insert insert, SchedulerText scheduler)
      : insert_(std::move(insert)), scheduler_(scheduler) {}
  void learn(const std::vector<dwell_kernel_stack_sample>& samples);

 private:
  struct Suspect {
    StackEvidence evidence;
    int samples = 1;
    bool is_news = true;  // as it stands it was not published
  };
  struct Key {
    std::vector<Suspect> suspects;
    uint16_t ways = 0;  // signatures in the map
  };
  void take(const dwell_kernel_stack_sample& sample);
  void publish_news(dwell_signature_key key);

  Insert insert_;
  SchedulerText scheduler_;
  std::unordered_map<uint64_t, Key> keys_;  // by tid and cause
};

// Into the probe's own map (ProbeMaps::signatures).
SignatureLearner::Insert insert_into_map(int signatures_fd);

}  // namespace dwell::probe
