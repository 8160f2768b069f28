// The unwind data of a hostile file: compiled, then looked up where rows begin and end. The first
// two bytes divide the input between .eh_frame, and .debug_frame or a table of Go's functions.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "unwind/table.h"

namespace {

void require(bool holds) {
  if (!holds) abort();
}

void check(const dwell::unwind::Table& table) {
  for (size_t number = 0; number < table.pages.size(); ++number) {
    const dwell_unwind_page& page = table.pages[number];
    require(page.first_row + page.rows <= table.rows.size());
    const uint64_t start = (table.first_page + number) << DWELL_UNWIND_PAGE_SHIFT;
    for (uint32_t i = 0; i < page.rows; ++i) {
      const dwell_unwind_row row = table.rows[page.first_row + i];
      require((row & 0xffff) < table.rules.size());
      require(i > 0 ? table.rows[page.first_row + i - 1] >> 16 < row >> 16 : row >> 16 == 0);
      const auto* rule = table.find(start + (row >> 16));
      require(rule == nullptr || rule == &table.rules[row & 0xffff]);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dwell::unwind;
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const size_t first = bytes.size() * (data[0] | data[1] << 8) / 65536;
  const CfiSource source = {
      {bytes.substr(0, first), 0x9000}, {bytes.substr(first), 0}, {{0x1000, uint64_t{1} << 40}}};
  TableLimits limits;
  limits.rows_max = 1 << 16;
  check(compile(source, limits));
  check(compile({source.eh_frame, {}, source.code, source.debug_frame.bytes, 0x2000}, limits));
  return 0;
}
