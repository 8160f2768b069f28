// Which symbols of a table hold the addresses that somebody asks about? All others need no name and
// are forgotten: of a large library a recording meets some hundred functions.
//
// The rules are those of SymbolTable, which is made of what is left: it finds for each of these
// addresses what it would find with all symbols. For other addresses it may not.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "symbolize/symbol_table.h"

namespace dwell::symbolize {

// Leaves those that hold one of the addresses (ascending), each with its size settled: of one
// address the largest of the best binding, and all that differ from it in name only.
void keep_holders(std::vector<Symbol>& symbols, std::span<const uint64_t> addresses);

// A label inside a sized function is a jump target of hand-written assembly, not a function.
// `symbols` are in order of address, the largest of one address first.
void drop_inner_labels(std::vector<Symbol>& symbols);

// Of an unsized symbol, behind which the next one lies at `next`: at least one byte.
uint32_t bytes_up_to(const Symbol& symbol, uint64_t next);

}  // namespace dwell::symbolize
