// For tests and benchmarks: keeps the calling thread on a CPU.
#pragma once

#include <cstdint>
#include <vector>

namespace dwell {
inline namespace v0 {

// While it lives; afterwards the thread may run where it might before.
class PinToCpu {
 public:
  explicit PinToCpu(uint32_t cpu);
  ~PinToCpu();
  PinToCpu(const PinToCpu&) = delete;
  PinToCpu& operator=(const PinToCpu&) = delete;

 private:
  std::vector<uint8_t> before_;
};

}  // namespace v0
}  // namespace dwell
