// Go's table of functions, of a hostile program: what it names lies inside it and ascends.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "symbolize/pclntab.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dwell::symbolize;
  const std::string_view table(reinterpret_cast<const char*>(data), size);
  auto read = Pclntab::read(table);
  if (!read) return 0;
  if (read->counts_from_text()) read->set_text_start(0x401000);
  for (const GoFunction& function : read->functions()) {
    const bool inside = function.name.data() >= table.data() &&
                        function.name.data() + function.name.size() <= table.data() + size;
    if (!inside || function.bytes == 0 || function.name.size() > Pclntab::kNameMax) std::abort();
  }
  return 0;
}
