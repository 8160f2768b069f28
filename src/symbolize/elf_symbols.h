// Collects the functions of an ELF file from .symtab, .dynsym, the PLT and Go's own table, within a
// memory budget. Names are read last, of those functions that are wanted: the files of the tables
// stay open until then.
// Called by the symbol loader, once per object: for the file itself, its debug file or the ELF file
// inside .gnu_debugdata.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "symbolize/elf_file.h"
#include "symbolize/symbol_table.h"

namespace dwell::symbolize {

class SymbolCollector {
 public:
  static constexpr uint64_t kNameTableMax = uint64_t{1} << 30;
  static constexpr size_t kNameMax = SectionWindow::kWindowBytes;  // longer names are cut
  static constexpr uint64_t kStubBytes = 16;                       // of the PLT

  // `segments` are those of the file that runs; a debug file's own may be junk.
  SymbolCollector(std::vector<LoadSegment> segments, size_t memory_max)
      : segments_(std::move(segments)), memory_max_(memory_max) {}

  // Adds the functions of the section of that type (SHT_SYMTAB or SHT_DYNSYM) and returns how many
  // there were; 0 without such a section. `elf` has its sections read.
  Result<size_t> add_table(const ElfFile& elf, uint32_t section_type, Resolution how);
  // A function that another table names; left out if it lies outside the executable segments.
  Status add_function(uint64_t address, uint64_t bytes, std::string_view name, Resolution how);
  // Names the stubs of .plt and .plt.sec after the function they jump to (x86-64 only).
  void add_plt(const ElfFile& elf);

  size_t size() const { return symbols_.size(); }
  // With all functions or those that hold one of the addresses (ascending). An error if the names
  // need too much memory.
  Result<SymbolTable> build(std::optional<std::span<const uint64_t>> wanted = std::nullopt) &&;

 private:
  Status read_symbols(const ElfFile& elf, const Section& table, Resolution how,
                      std::vector<Symbol>& out) const;
  Status drop_labels(std::vector<Symbol>& symbols, const SectionWindow& strings);
  Status read_names(std::span<Symbol> symbols, SectionWindow strings);
  bool in_text(uint64_t address) const;
  Status check_memory(size_t more_symbols) const;

  std::vector<LoadSegment> segments_;
  size_t memory_max_;
  std::vector<Symbol> symbols_;
  SymbolNames names_;
  std::vector<SectionWindow> sources_;  // string tables; Symbol::source is one more than the index
};

}  // namespace dwell::symbolize
