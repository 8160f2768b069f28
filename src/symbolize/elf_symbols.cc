#include "symbolize/elf_symbols.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>

#include "symbolize/symbol_choice.h"

namespace dwell::symbolize {
namespace {

constexpr size_t kChunkSymbols = 2048;

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

uint32_t clamp_32(uint64_t value) {
  return static_cast<uint32_t>(std::min<uint64_t>(value, UINT32_MAX));
}

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
  if (table->link >= elf.sections().size())
    return runtime_error("the symbol table has no string table");
  const Section& strings = elf.sections()[table->link];
  if (strings.type == SHT_NOBITS || strings.bytes > kNameTableMax)
    return runtime_error(
        fmt::format("the string table is absent or larger than {} bytes", kNameTableMax));
  std::vector<Symbol> found;
  sources_.emplace_back(elf.bytes(), strings);
  DWELL_TRY(read_symbols(elf, *table, how, found));
  DWELL_TRY(drop_labels(found, sources_.back()));
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
  // Room that is not written to costs nothing.
  out.reserve(std::min<uint64_t>(table.bytes / entry, memory_max_ / sizeof(Symbol)));
  const auto source = static_cast<uint8_t>(sources_.size());
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
      const uint64_t end = exact ? 0 : section->address + section->bytes;
      const uint64_t reach = end > symbol.address ? end - symbol.address : 0;
      out.push_back({symbol.address, clamp_32(symbol.bytes), clamp_32(reach), symbol.name,
                     binding_of(symbol.info), function, how, source});
    }
    DWELL_TRY(check_memory(out.size()));
  }
  return {};
}

// A label says by its name what it is.
Status SymbolCollector::drop_labels(std::vector<Symbol>& symbols, const SectionWindow& strings) {
  const auto untyped = std::ranges::partition(symbols, &Symbol::typed);
  DWELL_TRY(read_names(untyped, strings));
  const auto labels = std::ranges::remove_if(
      untyped, [&](const Symbol& symbol) { return is_label_only(names_.at(symbol.name)); });
  symbols.erase(labels.begin(), symbols.end());
  return {};
}

Status SymbolCollector::read_names(std::span<Symbol> symbols, SectionWindow strings) {
  std::ranges::sort(symbols, {}, &Symbol::name);
  // The last name copied: a later symbol may point into it (shared suffixes).
  uint64_t copied_start = 0, copied_end = 0;
  uint32_t copied_to = 0;
  for (Symbol& symbol : symbols) {
    if (symbol.name >= copied_end) {
      const std::string_view name = strings.text_at(symbol.name);
      copied_start = symbol.name;
      copied_end = symbol.name + name.size() + 1;
      copied_to = names_.add(name);
      DWELL_TRY(check_memory(0));
    }
    symbol.name = copied_to + static_cast<uint32_t>(symbol.name - copied_start);
    symbol.source = 0;
  }
  return {};
}

Result<SymbolTable> SymbolCollector::build(std::optional<std::span<const uint64_t>> wanted) && {
  if (wanted) keep_holders(symbols_, *wanted);
  std::ranges::sort(symbols_, {}, &Symbol::source);
  for (size_t i = 0; i < sources_.size(); ++i) {
    const auto of_source =
        std::ranges::equal_range(symbols_, static_cast<uint8_t>(i + 1), {}, &Symbol::source);
    if (!wanted) names_.reserve(std::min<uint64_t>(sources_[i].size(), memory_max_));
    DWELL_TRY(read_names(of_source, sources_[i]));
  }
  std::erase_if(symbols_, [&](const Symbol& symbol) { return names_.at(symbol.name).empty(); });
  return SymbolTable(std::move(symbols_), std::move(names_));
}

Status SymbolCollector::add_function(uint64_t address, uint64_t bytes, std::string_view name,
                                     Resolution how) {
  if (!in_text(address)) return {};
  DWELL_TRY(check_memory(1));
  symbols_.push_back({address, clamp_32(bytes), 0, names_.add(name), Binding::kGlobal, true, how});
  return {};
}

void SymbolCollector::add_plt(const ElfFile& elf) {
  const Section* dynamic = elf.section_of_type(SHT_DYNSYM);
  if (dynamic == nullptr || dynamic->link >= elf.sections().size()) return;
  std::vector<Stub> stubs = stubs_of(elf);
  SectionWindow symbols(elf.bytes(), *dynamic);
  for (Stub& stub : stubs) {
    const std::string_view at = symbols.at(stub.symbol * sizeof(Elf64_Sym), sizeof(Elf64_Sym));
    stub.symbol = at.size() == sizeof(Elf64_Sym) ? raw<Elf64_Sym>(at.data()).name : 0;
  }
  std::ranges::sort(stubs, {}, &Stub::symbol);
  SectionWindow names(elf.bytes(), elf.sections()[dynamic->link]);
  for (const Stub& stub : stubs) {
    const std::string_view target =
        stub.symbol == 0 ? std::string_view() : names.text_at(stub.symbol);
    if (target.empty() || !in_text(stub.address) || !check_memory(1)) continue;
    symbols_.push_back({stub.address, kStubBytes, 0, names_.add(std::string(target) + "@plt"),
                        Binding::kLocal, true, Resolution::kPlt});
  }
}

}  // namespace dwell::symbolize
