#include "cli/cause.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "abi/off_cpu.h"

namespace dwell::cli {
namespace {

struct SyscallName {
  uint16_t number;
  std::string_view name;
};
// Generated from the kernel's headers by CMakeLists.txt: {number, "name"}, ascending.
constexpr SyscallName kNames64[] = {
#include "syscalls_64.inc"
};
constexpr SyscallName kNames32[] = {
#include "syscalls_32.inc"
};

template <size_t N>
std::string name_of(const SyscallName (&names)[N], uint16_t number) {
  for (const SyscallName& name : names)
    if (name.number == number) return std::string(name.name);
  return fmt::format("syscall {}", number);
}

}  // namespace

std::string cause_name(uint16_t cause) {
  switch (cause) {
    case DWELL_CAUSE_PREEMPTED:
      return "preempted";
    case DWELL_CAUSE_FAULT:
      return "page fault";
    case DWELL_CAUSE_KTHREAD:
      return "kernel thread";
    case DWELL_CAUSE_NEW_THREAD:
      return "new thread";
    case DWELL_CAUSE_UNKNOWN:
      return "unknown";
    default:
      break;
  }
  if (cause & DWELL_CAUSE_COMPAT) return name_of(kNames32, cause & ~DWELL_CAUSE_COMPAT);
  return name_of(kNames64, cause);
}

}  // namespace dwell::cli
