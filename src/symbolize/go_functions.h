// Names of a Go program that was stripped, from its pclntab.
// Called by the symbol loader for files without a symbol table.
#pragma once

#include "base/result.h"
#include "symbolize/elf_file.h"
#include "symbolize/elf_symbols.h"

namespace dwell::symbolize {

// Adds the functions and returns how many there were; 0 if it is no Go program. `elf` has its
// sections read.
Result<size_t> add_go_functions(const ElfFile& elf, SymbolCollector& collector);

}  // namespace dwell::symbolize
