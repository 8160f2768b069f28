#include "symbolize/debug_names.h"

#include <elf.h>

#include <algorithm>
#include <vector>

#include "symbolize/elf_symbols.h"

namespace dwell::symbolize {
namespace {

// From the first to the last byte of code, by sections: the segments of a debug file may be junk.
LoadSegment code_of(const ElfFile& elf) {
  uint64_t start = UINT64_MAX, end = 0;
  for (const Section& section : elf.sections()) {
    if ((section.flags & SHF_EXECINSTR) == 0) continue;
    start = std::min(start, section.address);
    end = std::max(end, section.address + std::min(section.bytes, UINT64_MAX - section.address));
  }
  return {0, start, end > start ? end - start : 0, true};
}

}  // namespace

SymbolTable DebugNames::read() const {
  const auto bytes = FileBytes::of_file(file_, "debug file");
  auto elf = bytes ? ElfFile::read(*bytes) : std::unexpected(bytes.error());
  if (!elf || !elf->read_sections()) return {};
  SymbolCollector collector({code_of(*elf)}, kSymbolBytesMax);
  if (!collector.add_table(*elf, SHT_SYMTAB, Resolution::kDebugFile)) return {};
  std::vector<uint64_t> wanted(addresses_.begin(), addresses_.end());
  std::ranges::sort(wanted);
  return std::move(collector).build(wanted).value_or(SymbolTable());
}

void DebugNames::complete(uint64_t address, SourceChain& chain) {
  if (!chain.empty() && !chain.back().function.empty()) return;
  if (!table_) table_ = read();
  const auto match = table_->find(address);
  if (!match) return;
  if (chain.empty()) chain.emplace_back();
  chain.back().function = match->name;
}

}  // namespace dwell::symbolize
