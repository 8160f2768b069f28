// The unwind data of one file, compiled: for every code address a rule, found by two binary
// searches. A plain value, the same whatever process maps the file.
//
// Rows lie page by page (64 KiB of code), ascending; the first of a page is the one in force at its
// first byte. Rules are numbered within the table; whoever loads it renumbers them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "unwind/cfi_section.h"
#include "unwind/rule.h"

namespace dwell::unwind {

struct CodeRange {
  uint64_t start = 0;
  uint64_t end = 0;
};

// What a file has; views into somebody's bytes. Any section may be empty.
struct CfiSource {
  SectionBytes eh_frame;
  SectionBytes debug_frame;
  std::vector<CodeRange> code;         // its executable segments
  std::string_view go_functions = {};  // a Go program's pclntab
  uint64_t go_text_start = 0;          // for a pclntab that leaves it open
};

struct Table {
  uint64_t first_page = 0;  // address >> DWELL_UNWIND_PAGE_SHIFT
  std::vector<dwell_unwind_page> pages;
  std::vector<dwell_unwind_row> rows;
  std::vector<Rule> rules;
  uint64_t covered_bytes = 0;  // code that has a rule, whether or not the walker can follow it
  uint64_t entries = 0;        // FDEs that gave rows
  FaultCounts faults = {};

  // The rule for an address: what the walker in bpf/ finds. Null where there is no unwind data.
  const Rule* find(uint64_t address) const;
};

// Limits of one file; what lies beyond them has no rows and is counted as Fault::kTooMany.
struct TableLimits {
  size_t rows_max = size_t{16} << 20;
  size_t pages_max = 1 << 16;  // 4 GiB of addresses
};

Table compile(const CfiSource& source, const TableLimits& limits = {});

}  // namespace dwell::unwind
