// Functions that a file's DWARF leaves out (assembler, parts built without -g) but its symbol table
// names. Used in the process that looks up lines, on the same file.
#pragma once

#include <cstdint>
#include <optional>

#include "symbolize/dwarf_lines.h"
#include "symbolize/symbol_table.h"

namespace dwell::symbolize {

class DebugNames {
 public:
  static constexpr size_t kSymbolBytesMax = size_t{1} << 30;

  // The file stays open as long as this lives; its table is read when a name is missing.
  explicit DebugNames(int file) : file_(file) {}
  // Gives the function that holds the address its name if the chain does not tell it.
  void complete(uint64_t address, SourceChain& chain);

 private:
  static SymbolTable read(int file);

  int file_;
  std::optional<SymbolTable> table_;
};

}  // namespace dwell::symbolize
