#include "symbolize/symbol_loader.h"

#include <elf.h>

#include "symbolize/elf_symbols.h"

namespace dwell::symbolize {
namespace {

constexpr const char* kNoSymtab = "no symbol table in the file";
constexpr const char* kInstallDebug =
    "install the package's debug symbols, or build without stripping";

}  // namespace

LoadedSymbols load_symbols(FileBytes bytes, const std::string& path, const DebugPlaces& places,
                           size_t memory_max) {
  (void)path;
  (void)places;
  LoadedSymbols loaded;
  auto elf = ElfFile::read(bytes);
  if (!elf) return {nullptr, elf.error().message, ""};
  if (const Status sections = elf->read_sections(); !sections)
    return {nullptr, sections.error().message, kInstallDebug};
  SymbolCollector collector(elf->segments(), memory_max);
  const auto full = collector.add_table(*elf, SHT_SYMTAB, Resolution::kSymtab);
  if (!full) loaded.reason = full.error().message;
  if (!full || *full == 0) {
    if (loaded.reason.empty()) loaded.reason = kNoSymtab;
    loaded.remedy = kInstallDebug;
  }
  if (const auto exported = collector.add_table(*elf, SHT_DYNSYM, Resolution::kDynsym); !exported)
    loaded.reason = exported.error().message;
  collector.add_plt(*elf);
  if (collector.size() > 0)
    loaded.table = std::make_unique<SymbolTable>(std::move(collector).build());
  return loaded;
}

}  // namespace dwell::symbolize
