// The vDSO: an ELF image that the kernel maps into every process and that no file holds.
#pragma once

#include <cstdint>
#include <string>

#include "symbolize/live_process.h"

namespace dwell::symbolize {

constexpr uint64_t kVdsoMax = 64 << 10;

// Our own image, which is that of every 64-bit process; "" if we have none.
std::string own_vdso();
// The image that a process has mapped at [start, end): 32-bit processes have another one.
std::string remote_vdso(const LiveProcess& process, uint64_t start, uint64_t end);

}  // namespace dwell::symbolize
