// MiniDebugInfo: an xz-compressed ELF file inside .gnu_debugdata that holds the local functions
// which .dynsym lacks. Fedora and SUSE ship it in every stripped binary.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace dwell::symbolize {

constexpr size_t kMiniDebugMax = size_t{64} << 20;        // decompressed
constexpr size_t kMiniDebugInputMax = size_t{32} << 20;   // compressed
constexpr size_t kMiniDebugMemoryMax = size_t{96} << 20;  // of the decoder: its dictionary

// The ELF file inside. An error for anything but one whole .xz stream within the limits.
Result<std::string> decompress_mini_debug(std::string_view compressed);

}  // namespace dwell::symbolize
