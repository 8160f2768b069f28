// Go's table of functions, of a hostile program: what it says lies inside it and ascends.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "unwind/pclntab.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using dwell::unwind::Pclntab;
  const std::string_view table(reinterpret_cast<const char*>(data), size);
  const auto is_inside = [&](std::string_view part) {
    return part.empty() ||
           (part.data() >= table.data() && part.data() + part.size() <= table.data() + size);
  };
  const auto at = Pclntab::find(table);
  if (at && !Pclntab::read(table.substr(*at))) std::abort();
  const auto read = Pclntab::read(table, 0x401000);
  if (!read) return 0;
  for (uint64_t i = 0; i < read->size(); ++i) {
    const auto function = read->function(i);
    if (!function) continue;
    if (function->end <= function->start || function->name.size() > Pclntab::kNameMax) std::abort();
    if (!is_inside(function->name) || !is_inside(function->frame_sizes)) std::abort();
  }
  return 0;
}
