#include "symbolize/go_functions.h"

#include <elf.h>

#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "symbolize/pclntab.h"

namespace dwell::symbolize {
namespace {

// A section that is, or begins with, the table. `mixed` ones hold it somewhere: the system's linker
// puts it there in position-independent programs.
struct Place {
  const char* section;
  bool mixed;
};
constexpr Place kPlaces[] = {
    {".gopclntab", false}, {".data.rel.ro.gopclntab", false}, {".data.rel.ro", true}};

struct Found {
  std::string bytes;  // of the section
  uint64_t at = 0;    // of the table in it
  uint64_t address = 0;
  std::string_view table() const { return std::string_view(bytes).substr(at); }
};

std::optional<uint64_t> find_table(std::string_view bytes) {
  for (uint64_t at = 0; at < bytes.size(); at += Pclntab::kAlignment)
    if (Pclntab::read(bytes.substr(at))) return at;
  return std::nullopt;
}

Result<std::optional<Found>> find_pclntab(const ElfFile& elf) {
  // What every Go program has, so that other programs are not searched.
  const bool is_go =
      elf.section(".note.go.buildid") || elf.section(".go.buildinfo") || elf.section(".gopclntab");
  for (const Place& place : kPlaces) {
    const Section* section = is_go ? elf.section(place.section) : nullptr;
    if (section == nullptr) continue;
    DWELL_ASSIGN(std::string bytes, elf.section_bytes(*section, kPclntabMax));
    const auto at = place.mixed ? find_table(bytes) : std::optional<uint64_t>(0);
    if (at) return Found{std::move(bytes), *at, section->address + *at};
  }
  return std::nullopt;
}

// What the dynamic linker writes at `address`: the addend of its relative relocation.
std::optional<uint64_t> relocated(const ElfFile& elf, uint64_t address) {
  if (!elf.is_64()) return std::nullopt;
  for (const Section& section : elf.sections()) {
    if (section.type != SHT_RELA) continue;
    const auto bytes = elf.section_bytes(section, kGoRelocationsMax);
    for (size_t at = 0; bytes && at + sizeof(Elf64_Rela) <= bytes->size();
         at += sizeof(Elf64_Rela)) {
      Elf64_Rela entry;
      std::memcpy(&entry, bytes->data() + at, sizeof(entry));
      if (entry.r_offset == address && ELF64_R_SYM(entry.r_info) == 0)
        return static_cast<uint64_t>(entry.r_addend);
    }
  }
  return std::nullopt;
}

// Newer linkers leave the field empty. Only where .text is as long as the table says can it have
// been made of Go alone, and begin where Go's text does.
std::optional<uint64_t> text_of_same_length(const ElfFile& elf, uint64_t bytes) {
  constexpr uint64_t kPaddingMax = 64;
  const Section* text = elf.section(".text");
  if (text == nullptr || bytes > text->bytes || text->bytes - bytes > kPaddingMax)
    return std::nullopt;
  return text->address;
}

}  // namespace

Result<size_t> add_go_functions(const ElfFile& elf, SymbolCollector& collector) {
  DWELL_ASSIGN(const std::optional<Found> found, find_pclntab(elf));
  if (!found) return 0;
  DWELL_ASSIGN(Pclntab table, Pclntab::read(found->table()));
  if (table.counts_from_text() && table.text_start() == 0) {
    auto start = relocated(elf, found->address + table.text_start_at());
    if (!start) start = text_of_same_length(elf, table.text_bytes());
    if (!start) return runtime_error("the pclntab does not say where its text begins");
    table.set_text_start(*start);
  }
  const size_t before = collector.size();
  for (const GoFunction& function : table.functions())
    DWELL_TRY(collector.add_function(function.address, function.bytes, function.name,
                                     Resolution::kGoPclntab));
  return collector.size() - before;
}

}  // namespace dwell::symbolize
