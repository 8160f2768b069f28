#include "event_array/pin.h"

#include <sched.h>

#include <cstdio>

namespace dwell {
inline namespace v0 {
namespace {

constexpr size_t kCpuMaskBytes = 1024;  // 8,192 CPUs

}  // namespace

PinToCpu::PinToCpu(uint32_t cpu) : before_(kCpuMaskBytes) {
  sched_getaffinity(0, before_.size(), reinterpret_cast<cpu_set_t*>(before_.data()));
  std::vector<uint8_t> one(kCpuMaskBytes);
  one[cpu / 8] = static_cast<uint8_t>(1u << cpu % 8);
  if (sched_setaffinity(0, one.size(), reinterpret_cast<cpu_set_t*>(one.data())) != 0)
    std::fprintf(stderr, "cannot pin to CPU %u\n", cpu);
}

PinToCpu::~PinToCpu() {
  sched_setaffinity(0, before_.size(), reinterpret_cast<cpu_set_t*>(before_.data()));
}

}  // namespace v0
}  // namespace dwell
