#include "symbolize/go_functions.h"

#include "symbolize/go_table.h"
#include "unwind/pclntab.h"

namespace dwell::symbolize {

Result<size_t> add_go_functions(const ElfFile& elf, SymbolCollector& collector) {
  DWELL_ASSIGN(const GoTable go, find_go_table(elf));
  if (go.bytes.empty()) return 0;
  DWELL_ASSIGN(const auto table, unwind::Pclntab::read(go.bytes, go.text_start));
  const size_t before = collector.size();
  for (uint64_t i = 0; i < table.size(); ++i) {
    const auto function = table.function(i);
    if (!function || function->name.empty()) continue;
    DWELL_TRY(collector.add_function(function->start, function->end - function->start,
                                     function->name, Resolution::kGoPclntab));
  }
  return collector.size() - before;
}

}  // namespace dwell::symbolize
