// The words that the symbolizer, the profile and the exporters share about frames. Values are
// stable: they stand in .dwell files.
#pragma once

#include <cstdint>

namespace dwell {
inline namespace v0 {

enum class ModuleKind : uint8_t {
  kUnknown,
  kFile,
  kDeletedFile,
  kMemfd,
  kVdso,
  kAnonymous,
  kJit,
  kKernel,
  kKernelModule,
  kBpf,
};

// How a frame got its name.
enum class Resolution : uint8_t {
  kNone,  // no name: shown as module+0xaddress
  kSymtab,
  kDynsym,
  kMiniDebugInfo,
  kDebugFile,
  kPerfMap,
  kKallsyms,
  kPlt,
  kGoPclntab,
  kPlaceholder,  // not an address: "[user stack lost: store full]"
  kJitDump,
  kPython,  // a code object of CPython
};
constexpr Resolution kResolutionLast = Resolution::kPython;

enum class FrameKind : uint8_t { kUser, kKernel, kPlaceholder };

}  // namespace v0
}  // namespace dwell
