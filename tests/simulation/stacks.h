// Stacks of the simulated threads, computed from a number instead of held: variant v of a user
// stack lies on a page of its own and is linked by frame pointers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runtime/memory.h"

namespace dwell::simulation {

inline constexpr uint32_t kStackVariants = 64;

uint64_t user_stack_pointer(uint32_t variant);
uint64_t user_frame_pointer(uint32_t variant);
uint64_t user_ip(uint32_t variant);
// What a walk must find, leaf first.
std::vector<uint64_t> user_frames(uint32_t variant);
std::span<const uint64_t> kernel_frames(uint32_t variant);

class StackMemory final : public runtime::Memory {
 public:
  bool read(uint64_t address, std::span<std::byte> to) const override;
};

}  // namespace dwell::simulation
