#include "stacks.h"

#include <array>
#include <cstring>

namespace dwell::simulation {
namespace {

constexpr uint64_t kBase = 0x7f00'0000'0000, kPage = 4096, kFrameBytes = 16;
constexpr uint64_t kCode = 0x40'0000, kKernelCode = 0xffff'ffff'8100'0000;

uint32_t depth_of(uint32_t variant) { return 3 + variant % 5; }

uint64_t return_address(uint32_t variant, uint32_t frame) {
  return kCode + variant * 0x1000 + (frame + 1) * 8;
}

}  // namespace

uint64_t user_frame_pointer(uint32_t variant) { return kBase + variant * kPage + 64; }
uint64_t user_stack_pointer(uint32_t variant) { return user_frame_pointer(variant) - 32; }
uint64_t user_ip(uint32_t variant) { return kCode + variant * 0x1000; }

std::vector<uint64_t> user_frames(uint32_t variant) {
  std::vector<uint64_t> frames{user_ip(variant)};
  for (uint32_t i = 0; i < depth_of(variant); ++i) frames.push_back(return_address(variant, i));
  return frames;
}

std::span<const uint64_t> kernel_frames(uint32_t variant) {
  static const auto all = [] {
    std::array<std::vector<uint64_t>, kStackVariants> stacks;
    for (uint32_t v = 0; v < kStackVariants; ++v)
      for (uint32_t i = 0; i < 4 + v % 7; ++i)
        stacks[v].push_back(kKernelCode + v * 0x1000 + i * 0x10);
    return stacks;
  }();
  return all[variant];
}

bool StackMemory::read(uint64_t address, std::span<std::byte> to) const {
  const uint64_t variant = (address - kBase) / kPage;
  if (address < kBase || variant >= kStackVariants) return false;
  const auto v = static_cast<uint32_t>(variant);
  if (address + to.size() > kBase + (variant + 1) * kPage) return false;
  std::memset(to.data(), 0, to.size());
  for (uint32_t i = 0; i < depth_of(v); ++i) {
    const uint64_t at = user_frame_pointer(v) + i * kFrameBytes;
    const uint64_t next = i + 1 < depth_of(v) ? at + kFrameBytes : 0;
    const uint64_t words[2] = {next, return_address(v, i)};
    if (at < address || at + sizeof words > address + to.size()) continue;
    std::memcpy(to.data() + (at - address), words, sizeof words);
  }
  return true;
}

}  // namespace dwell::simulation
