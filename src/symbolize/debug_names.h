// Functions that a file's DWARF leaves out (assembler, parts built without -g) but its symbol table
// names. Used in the process that looks up lines, on the same file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "symbolize/dwarf_lines.h"
#include "symbolize/symbol_table.h"

namespace dwell::symbolize {

class DebugNames {
 public:
  static constexpr size_t kSymbolBytesMax = size_t{1} << 30;

  // For these addresses. The file stays open as long as this lives; its table is read when the
  // first name is missing.
  DebugNames(int file, std::span<const uint64_t> addresses) : file_(file), addresses_(addresses) {}
  // Gives the function that holds the address its name if the chain does not tell it.
  void complete(uint64_t address, SourceChain& chain);

 private:
  SymbolTable read() const;

  int file_;
  std::span<const uint64_t> addresses_;
  std::optional<SymbolTable> table_;
};

}  // namespace dwell::symbolize
