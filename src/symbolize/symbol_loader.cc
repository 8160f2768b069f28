#include "symbolize/symbol_loader.h"

#include <elf.h>

#include <cerrno>

#include "symbolize/debug_file.h"
#include "symbolize/elf_symbols.h"
#include "symbolize/go_functions.h"
#include "symbolize/mini_debug.h"

namespace dwell::symbolize {
namespace {

constexpr const char* kInstallDebug =
    "install the package's debug symbols, report with --debuginfod, or build without stripping";

// What the names are read from in the end.
struct OpenTables {
  DebugSearch debug_file;
  std::string mini_debug;
};

// Adds .symtab of `bytes`, an ELF file that stands beside the one that runs.
Result<size_t> add_symtab_of(FileBytes bytes, Resolution how, SymbolCollector& collector) {
  DWELL_ASSIGN(ElfFile elf, ElfFile::read(bytes));
  DWELL_TRY(elf.read_sections());
  return collector.add_table(elf, SHT_SYMTAB, how);
}

Result<size_t> add_debug_file(const ElfFile& elf, const std::string& path,
                              const DebugPlaces& places, OpenTables& open,
                              SymbolCollector& collector) {
  open.debug_file = find_debug_file(elf, path, places);
  const DebugSearch& search = open.debug_file;
  if (!search.found) {
    if (search.refused.empty()) return 0;
    return runtime_error("no symbol table in the file; the debug file " + search.refused);
  }
  DWELL_ASSIGN(const FileBytes bytes,
               FileBytes::of_file(search.found->fd.get(), search.found->path));
  return add_symtab_of(bytes, Resolution::kDebugFile, collector);
}

Result<size_t> add_mini_debug(const ElfFile& elf, OpenTables& open, SymbolCollector& collector) {
  const Section* section = elf.section(".gnu_debugdata");
  if (section == nullptr) return 0;
  DWELL_ASSIGN(const std::string compressed, elf.section_bytes(*section, kMiniDebugInputMax));
  DWELL_ASSIGN(open.mini_debug, decompress_mini_debug(compressed));
  return add_symtab_of(FileBytes::of_memory(open.mini_debug), Resolution::kMiniDebugInfo,
                       collector);
}

// Runs the sources in order until one gives functions; the first complaint is kept as the reason.
class Sources {
 public:
  bool gave(const Result<size_t>& result) {
    if (!result && complaint_.message.empty()) complaint_ = result.error();
    return result && *result > 0;
  }
  const Error& complaint() const { return complaint_; }

 private:
  Error complaint_;
};

}  // namespace

LoadedSymbols load_symbols(FileBytes bytes, const std::string& path, const DebugPlaces& places,
                           size_t memory_max, std::optional<std::span<const uint64_t>> wanted) {
  LoadedSymbols loaded;
  auto elf = ElfFile::read(bytes);
  if (!elf) return {nullptr, elf.error().message, ""};
  if (const Status sections = elf->read_sections(); !sections)
    return {nullptr, sections.error().message, kInstallDebug};
  OpenTables open;
  SymbolCollector collector(elf->segments(), memory_max);
  Sources sources;
  const bool full = sources.gave(collector.add_table(*elf, SHT_SYMTAB, Resolution::kSymtab)) ||
                    sources.gave(add_debug_file(*elf, path, places, open, collector));
  const bool go = !full && sources.gave(add_go_functions(*elf, collector));
  const bool locals = full || sources.gave(add_mini_debug(*elf, open, collector)) || go;
  // A full table names all that .dynsym does, and in large libraries .dynsym is as large.
  if (!full) sources.gave(collector.add_table(*elf, SHT_DYNSYM, Resolution::kDynsym));
  collector.add_plt(*elf);
  const bool any = collector.size() > 0;
  auto table = std::move(collector).build(wanted);
  if (!table) sources.gave(std::unexpected(table.error()));
  loaded.reason = sources.complaint().message;
  if (sources.complaint().code == ENOMEM) {
    loaded.remedy = "give symbols more memory";
  } else if (!locals) {
    if (loaded.reason.empty()) loaded.reason = "no symbol table in the file";
    loaded.remedy = kInstallDebug;
  }
  if (any && table) loaded.table = std::make_unique<SymbolTable>(std::move(*table));
  return loaded;
}

}  // namespace dwell::symbolize
