// A small generator whose sequence is the same everywhere, so that a failure can be run again.
#pragma once

#include <cstdint>

namespace dwell::simulation {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ * 0x2545f4914f6cdd1dull;
  }
  // In [0, n).
  uint64_t below(uint64_t n) { return static_cast<uint64_t>((__uint128_t{next()} * n) >> 64); }
  bool chance(uint32_t per_million) { return below(1'000'000) < per_million; }

 private:
  uint64_t state_;
};

}  // namespace dwell::simulation
