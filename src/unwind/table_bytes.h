// A compiled table as bytes, for the cache on disk: little endian, with a checksum.
//
// Reading trusts nothing: sizes are checked against the limits of a table before memory is asked
// for, and what is returned keeps every promise of table.h. Called by src/symbolize/table_cache.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "unwind/table.h"

namespace dwell::unwind {

// Raised whenever compile() makes another table of the same sections, or the layout changes: what
// is cached under the old number is never found again.
constexpr uint32_t kTableVersion = 2;

std::string to_bytes(const Table& table);
Result<Table> table_from_bytes(std::string_view bytes, const TableLimits& limits = {});

}  // namespace dwell::unwind
