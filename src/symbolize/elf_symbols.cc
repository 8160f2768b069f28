#include "symbolize/elf_symbols.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace dwell::symbolize {
namespace {

constexpr size_t kChunkSymbols = 8192;
constexpr uint64_t kWindowBytes = uint64_t{1} << 20;

// Index, type, binding in one shape for both classes.
struct RawSymbol {
  uint32_t name = 0;
  uint8_t info = 0;
  uint16_t section = 0;
  uint64_t address = 0;
  uint64_t bytes = 0;
};

template <typename Sym>
RawSymbol raw(const char* at) {
  Sym symbol;
  std::memcpy(&symbol, at, sizeof(symbol));
  return {symbol.st_name, symbol.st_info, symbol.st_shndx, symbol.st_value, symbol.st_size};
}

Binding binding_of(uint8_t info) {
  switch (ELF64_ST_BIND(info)) {
    case STB_LOCAL:
      return Binding::kLocal;
    case STB_WEAK:
      return Binding::kWeak;
    default:
      return Binding::kGlobal;
  }
}

const Section* text_section(const ElfFile& elf, uint16_t index) {
  if (index >= elf.sections().size()) return nullptr;
  const Section& section = elf.sections()[index];
  return (section.flags & SHF_EXECINSTR) != 0 ? &section : nullptr;
}

// A label of the assembler that is no function: mapping symbols, local labels.
bool is_label_only(std::string_view name) {
  return name.empty() || name.starts_with('$') || name.starts_with(".L");
}

// Reads a section in order of offset through a sliding window, so that a table of a gigabyte costs
// one pass and a megabyte of memory.
class SectionWindow {
 public:
  SectionWindow(const ElfFile& elf, const Section& section) : elf_(elf), section_(section) {}

  // `wanted` bytes at `offset`, fewer at the end of the section. Offsets must rise.
  std::string_view at(uint64_t offset, uint64_t wanted) {
    if (offset >= section_.bytes || section_.type == SHT_NOBITS) return {};
    wanted = std::min(wanted, section_.bytes - offset);
    if (offset < start_ || offset + wanted > start_ + window_.size()) fill(offset);
    if (offset < start_ || offset - start_ >= window_.size()) return {};
    return std::string_view(window_).substr(offset - start_, wanted);
  }

 private:
  void fill(uint64_t offset) {
    start_ = offset;
    window_.resize(std::min(kWindowBytes, section_.bytes - offset));
    if (!elf_.bytes().read(section_.offset + offset, window_.data(), window_.size()))
      window_.clear();
  }
  const ElfFile& elf_;
  const Section& section_;
  uint64_t start_ = 0;
  std::string window_;
};

class NameReader {
 public:
  NameReader(const ElfFile& elf, const Section& strings) : window_(elf, strings) {}

  // The zero-ended string at `offset`, cut at kNameMax; "" if there is none. Offsets must rise.
  std::string_view at(uint64_t offset) {
    const std::string_view text = window_.at(offset, SymbolCollector::kNameMax);
    return text.substr(0, std::min(text.find('\0'), text.size()));
  }

 private:
  SectionWindow window_;
};

// A stub of the PLT, and the symbol that its relocation names.
struct Stub {
  uint64_t address = 0;
  uint64_t symbol = 0;  // later: where its name stands
};

// The stubs in order of their symbols; empty if the file has none that can be told.
std::vector<Stub> stubs_of(const ElfFile& elf) {
  constexpr uint64_t kStubBytes = SymbolCollector::kStubBytes;
  constexpr uint64_t kRelocationsMax = uint64_t{16} << 20;
  const Section* relocations = elf.section(".rela.plt");
  const Section* stubs = elf.section(".plt.sec");
  const uint64_t skipped = stubs == nullptr ? kStubBytes : 0;  // .plt begins with the resolver stub
  if (stubs == nullptr) stubs = elf.section(".plt");
  if (elf.machine() != EM_X86_64 || !elf.is_64() || !relocations || !stubs) return {};
  const auto rela = elf.section_bytes(*relocations, kRelocationsMax);
  std::vector<Stub> all;
  for (size_t i = 0; rela && (i + 1) * sizeof(Elf64_Rela) <= rela->size(); ++i) {
    Elf64_Rela entry;
    std::memcpy(&entry, rela->data() + i * sizeof(entry), sizeof(entry));
    all.push_back({stubs->address + skipped + i * kStubBytes, ELF64_R_SYM(entry.r_info)});
  }
  std::ranges::sort(all, {}, &Stub::symbol);
  return all;
}

}  // namespace

bool SymbolCollector::in_text(uint64_t address) const {
  return std::ranges::any_of(segments_, [&](const LoadSegment& segment) {
    return segment.executable && segment.holds_address(address);
  });
}

Status SymbolCollector::check_memory(size_t more_symbols) const {
  // A symbol is held twice for a moment, as candidate and as entry.
  const size_t needed = (symbols_.size() + more_symbols) * 2 * sizeof(Symbol) + names_.size();
  if (needed <= memory_max_) return {};
  return std::unexpected(Error{
      Error::Kind::kRuntime,
      fmt::format("the symbol table needs more memory than the limit of {} bytes", memory_max_),
      ENOMEM});
}

Result<size_t> SymbolCollector::add_table(const ElfFile& elf, uint32_t section_type,
                                          Resolution how) {
  const Section* table = elf.section_of_type(section_type);
  if (table == nullptr || table->bytes == 0) return 0;
  std::vector<Symbol> found;
  DWELL_TRY(read_symbols(elf, *table, how, found));
  DWELL_TRY(read_names(elf, *table, found));
  const size_t count = found.size();
  if (symbols_.empty()) {
    symbols_ = std::move(found);
  } else {
    symbols_.insert(symbols_.end(), found.begin(), found.end());
  }
  return count;
}

Status SymbolCollector::read_symbols(const ElfFile& elf, const Section& table, Resolution how,
                                     std::vector<Symbol>& out) const {
  const size_t entry = elf.is_64() ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
  if (table.entry_bytes != entry)
    return runtime_error(
        fmt::format("the symbol table has entries of {} bytes, not {}", table.entry_bytes, entry));
  std::string chunk;
  for (uint64_t at = 0; at + entry <= table.bytes; at += chunk.size()) {
    chunk.resize(std::min<uint64_t>(kChunkSymbols * entry, (table.bytes - at) / entry * entry));
    if (table.type == SHT_NOBITS ||
        !elf.bytes().read(table.offset + at, chunk.data(), chunk.size()))
      return runtime_error("the symbol table is cut off");
    for (size_t i = 0; i < chunk.size(); i += entry) {
      const char* from = chunk.data() + i;
      const RawSymbol symbol = elf.is_64() ? raw<Elf64_Sym>(from) : raw<Elf32_Sym>(from);
      const uint8_t type = ELF64_ST_TYPE(symbol.info);
      const bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
      const Section* section = text_section(elf, symbol.section);
      if (!function && (type != STT_NOTYPE || section == nullptr)) continue;
      if (symbol.section == SHN_UNDEF || symbol.name == 0 || !in_text(symbol.address)) continue;
      const bool exact = how == Resolution::kDynsym || section == nullptr;
      const uint64_t reach = exact ? 0 : section->address + section->bytes;
      out.push_back({symbol.address, symbol.bytes, reach, symbol.name, binding_of(symbol.info),
                     function, how});
    }
    DWELL_TRY(check_memory(out.size()));
  }
  return {};
}

Status SymbolCollector::read_names(const ElfFile& elf, const Section& table,
                                   std::vector<Symbol>& symbols) {
  if (table.link >= elf.sections().size())
    return runtime_error("the symbol table has no string table");
  const Section& strings = elf.sections()[table.link];
  if (strings.type == SHT_NOBITS || strings.bytes > kNameTableMax)
    return runtime_error(
        fmt::format("the string table is absent or larger than {} bytes", kNameTableMax));
  std::ranges::sort(symbols, {}, &Symbol::name);
  NameReader reader(elf, strings);
  names_.reserve(std::min<uint64_t>(strings.bytes, memory_max_));
  // The last name copied: a later symbol may point into it (shared suffixes).
  uint64_t copied_start = 0, copied_end = 0;
  uint32_t copied_to = 0;
  for (Symbol& symbol : symbols) {
    if (symbol.name >= copied_end) {
      const std::string_view name = reader.at(symbol.name);
      copied_start = symbol.name;
      copied_end = symbol.name + name.size() + 1;
      copied_to = names_.add(name);
      DWELL_TRY(check_memory(symbols.size()));
    }
    symbol.name = copied_to + static_cast<uint32_t>(symbol.name - copied_start);
  }
  std::erase_if(symbols, [&](const Symbol& symbol) {
    const std::string_view name = names_.at(symbol.name);
    return name.empty() || (!symbol.typed && is_label_only(name));
  });
  return {};
}

Status SymbolCollector::add_function(uint64_t address, uint64_t bytes, std::string_view name,
                                     Resolution how) {
  if (!in_text(address)) return {};
  DWELL_TRY(check_memory(1));
  symbols_.push_back({address, bytes, 0, names_.add(name), Binding::kGlobal, true, how});
  return {};
}

void SymbolCollector::add_plt(const ElfFile& elf) {
  const Section* dynamic = elf.section_of_type(SHT_DYNSYM);
  if (dynamic == nullptr || dynamic->link >= elf.sections().size()) return;
  std::vector<Stub> stubs = stubs_of(elf);
  SectionWindow symbols(elf, *dynamic);
  for (Stub& stub : stubs) {
    const std::string_view at = symbols.at(stub.symbol * sizeof(Elf64_Sym), sizeof(Elf64_Sym));
    stub.symbol = at.size() == sizeof(Elf64_Sym) ? raw<Elf64_Sym>(at.data()).name : 0;
  }
  std::ranges::sort(stubs, {}, &Stub::symbol);
  NameReader names(elf, elf.sections()[dynamic->link]);
  for (const Stub& stub : stubs) {
    const std::string_view target = stub.symbol == 0 ? std::string_view() : names.at(stub.symbol);
    if (target.empty() || !in_text(stub.address) || !check_memory(1)) continue;
    symbols_.push_back({stub.address, kStubBytes, 0, names_.add(std::string(target) + "@plt"),
                        Binding::kLocal, true, Resolution::kPlt});
  }
}

}  // namespace dwell::symbolize
