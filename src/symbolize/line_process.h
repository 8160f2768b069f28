// Looks up source lines in a process of its own (work_apart.h): libdw is no match for hostile
// debug information. That process opens no file but those that it is given.
//
// Called by `dwell report`.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "symbolize/debug_info.h"
#include "symbolize/dwarf_lines.h"

namespace dwell::symbolize {

struct LineLimits {
  std::chrono::seconds patience{120};          // for one file
  uint64_t memory_bytes = uint64_t{8} << 30;   // address space of the child
  size_t answer_bytes = size_t{1} << 29;       // all chains together
  static constexpr size_t kTextMax = 8 << 10;  // of a name or a path; longer ones are cut
  static constexpr uint32_t kFramesMax = 128;  // of one chain
};

// One chain for each address; a function that the DWARF does not know has the name that the file's
// symbol table gives it. An error if the file has no debug information that can be read.
Result<std::vector<SourceChain>> look_up_lines(const DebugInfo& files,
                                               std::span<const uint64_t> addresses,
                                               const LineLimits& limits = {});

}  // namespace dwell::symbolize
