// Separate debug files: where distributions put the symbols that they strip.
//
// Looked for by build id, then by .gnu_debuglink, each first in the root of the process and then in
// ours. A file is only believed if its build id is the same or, for a link, its checksum is right.
// Never asks the network. Called by the symbol loader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "symbolize/elf_file.h"
#include "symbolize/symbol_loader.h"

namespace dwell::symbolize {

constexpr uint64_t kChecksumMax = uint64_t{2} << 30;  // longer files are not read for a checksum

struct DebugFile {
  Fd fd;
  std::string path;
};

struct DebugSearch {
  std::optional<DebugFile> found;
  std::string refused;  // "PATH has another build id", "" if there was no candidate
};

// `elf` has its sections read; `path` is where it lies, inside its root.
DebugSearch find_debug_file(const ElfFile& elf, const std::string& path, const DebugPlaces& places);

// Where the debug file of that build id lies.
std::string build_id_path(const std::string& debug_dir, const std::string& build_id);

// Name and checksum in a .gnu_debuglink section; nothing if malformed or if the name has a slash.
struct DebugLink {
  std::string name;
  uint32_t checksum = 0;
};
std::optional<DebugLink> parse_debug_link(std::string_view section);

}  // namespace dwell::symbolize
