// Turns samples into signatures in the probe's map. The probe reads the ways of a key one after the
// other up to the first that is missing, so each signature goes to the next free way. Called by the
// recording loop.
#pragma once

#include <unordered_map>
#include <vector>

#include "abi/off_cpu.h"
#include "probe/signature.h"

namespace dwell::probe {

class SignatureLearner {
 public:
  SignatureLearner(int signatures_fd, SchedulerText scheduler)
      : fd_(signatures_fd), scheduler_(scheduler) {}
  void learn(const std::vector<dwell_kernel_stack_sample>& samples);

 private:
  struct Suspect {
    StackEvidence evidence;
    int samples = 1;
  };
  struct Key {
    std::vector<Suspect> suspects;
    uint16_t ways = 0;  // signatures in the map
  };
  void publish(dwell_signature_key key, Key& state, const StackEvidence& evidence);

  int fd_;
  SchedulerText scheduler_;
  std::unordered_map<uint64_t, Key> keys_;  // by tid and cause
};

}  // namespace dwell::probe
