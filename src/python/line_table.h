// Which line does an instruction of a Python function belong to? The location table of CPython 3.11
// and newer (co_linetable), whose format is documented in the interpreter's Objects/locations.md.
//
// Each entry covers 1 to 8 instruction words: a byte with its bit 7 set tells how the line changes
// and how many, and what else it tells follows in bytes without that bit. Hostile bytes cost at
// most their length.
#pragma once

#include <cstdint>
#include <string_view>

namespace dwell::python {

// Of instruction number `instruction`, in words of 2 bytes; 0: the table does not say.
uint32_t line_of(std::string_view table, uint32_t first_line, uint32_t instruction);

}  // namespace dwell::python
