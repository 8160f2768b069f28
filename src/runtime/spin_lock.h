// For sections of a few instructions, taken by programs that must not sleep.
#pragma once

#include <sched.h>

#include <atomic>

namespace dwell::runtime {

class SpinLock {
 public:
  void lock() {
    for (int spins = 0; locked_.exchange(true, std::memory_order_acquire); ++spins)
      if (spins > kSpinsMax) sched_yield();  // its owner has lost the host's CPU
  }
  void unlock() { locked_.store(false, std::memory_order_release); }

 private:
  static constexpr int kSpinsMax = 100;
  std::atomic<bool> locked_ = false;
};

}  // namespace dwell::runtime
