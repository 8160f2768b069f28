// Where the names of one ELF file come from, best first: its .symtab; the .symtab of its separate
// debug file; Go's pclntab, its .gnu_debugdata and its .dynsym together. Called by the object
// table, once per file.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "symbolize/elf_file.h"
#include "symbolize/object_files.h"
#include "symbolize/symbol_table.h"
#include "symbolize/symbolizer.h"

namespace dwell::symbolize {

struct LoadedSymbols {
  std::unique_ptr<SymbolTable> table;  // nullptr if there is no name at all
  std::string reason;                  // what was missing, even if some names were found
  std::string remedy;
};

struct DebugPlaces {
  int target_root = -1;  // O_PATH of the root that the file was found in
  int own_root = -1;
  std::string debug_dir;  // "/usr/lib/debug", inside either root
};

// With `wanted` (ascending) the table names these addresses only, and costs memory for them only.
LoadedSymbols load_symbols(FileBytes bytes, const std::string& path, const DebugPlaces& places,
                           size_t memory_max,
                           std::optional<std::span<const uint64_t>> wanted = std::nullopt);

}  // namespace dwell::symbolize
