// A cached unwind table that somebody has changed. The checksum stands in the way of everything
// else, so it is put right first; then the table is refused, or keeps the promises of table.h.
#include <xxhash.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "unwind/table_bytes.h"

namespace {

constexpr size_t kChecksumAt = 8, kChecked = 16;

void require(bool holds) {
  if (!holds) abort();
}

void check(const dwell::unwind::Table& table) {
  for (const dwell_unwind_page& page : table.pages) {
    require(uint64_t{page.first_row} + page.rows <= table.rows.size() || page.rows == 0);
    for (uint32_t i = 0; i < page.rows; ++i) {
      const dwell_unwind_row row = table.rows[page.first_row + i];
      require((row & 0xffff) < table.rules.size());
      require(i > 0 ? table.rows[page.first_row + i - 1] >> 16 < row >> 16 : row >> 16 == 0);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dwell::unwind;
  std::string bytes(reinterpret_cast<const char*>(data), size);
  if (size >= kChecked) {
    const uint64_t checksum = XXH3_64bits(bytes.data() + kChecked, bytes.size() - kChecked);
    std::memcpy(bytes.data() + kChecksumAt, &checksum, sizeof checksum);
  }
  const auto table = table_from_bytes(bytes);
  if (!table) return 0;
  check(*table);
  require(to_bytes(*table) == bytes);
  return 0;
}
