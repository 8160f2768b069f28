// Finds the pclntab of a Go program in its file, and where the text begins that it counts from: a C
// linker moves the one, and leaves the other to the dynamic linker. The file is a hostile one.
// Called for the names of functions (go_functions.h) and for their frames (unwind_data.h).
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "symbolize/elf_file.h"

namespace dwell::symbolize {

constexpr uint64_t kPclntabMax = uint64_t{192} << 20;  // a section that holds the table
constexpr uint64_t kGoRelocationsMax = uint64_t{64} << 20;

struct GoTable {
  std::string bytes;        // begins with the table; "" if it is no Go program
  uint64_t text_start = 0;  // 0 if the table itself has it
};

// An error if there is a table that cannot be used. `elf` has its sections read.
Result<GoTable> find_go_table(const ElfFile& elf);

}  // namespace dwell::symbolize
