#include "symbolize/go_table.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include "unwind/pclntab.h"

namespace dwell::symbolize {
namespace {

using unwind::Pclntab;

// A section that is, or begins with, the table. `mixed` ones hold it somewhere: the system's linker
// puts it there in position-independent programs.
struct Place {
  const char* section;
  bool mixed;
};
constexpr Place kPlaces[] = {
    {".gopclntab", false}, {".data.rel.ro.gopclntab", false}, {".data.rel.ro", true}};

struct Found {
  std::string bytes;  // from the table to the end of its section
  uint64_t address = 0;
};

// What every Go program has, so that other programs are not searched.
bool is_go(const ElfFile& elf) {
  return elf.section(".note.go.buildid") != nullptr || elf.section(".go.buildinfo") != nullptr;
}

Result<std::optional<Found>> find_table(const ElfFile& elf) {
  for (const Place& place : kPlaces) {
    const Section* section = elf.section(place.section);
    if (section == nullptr || (place.mixed && !is_go(elf))) continue;
    DWELL_ASSIGN(std::string bytes, elf.section_bytes(*section, kPclntabMax));
    const auto at = place.mixed ? Pclntab::find(bytes) : std::optional<uint64_t>(0);
    if (!at) continue;
    bytes.erase(0, *at);
    return Found{std::move(bytes), section->address + *at};
  }
  return std::nullopt;
}

// What the dynamic linker writes at `address`: the addend of its relative relocation.
std::optional<uint64_t> relocated(const ElfFile& elf, uint64_t address) {
  if (!elf.is_64()) return std::nullopt;
  uint64_t left = kGoRelocationsMax;  // of all: any number of sections may share their bytes
  for (const Section& section : elf.sections()) {
    if (section.type != SHT_RELA) continue;
    const auto bytes = elf.section_bytes(section, left);
    for (size_t at = 0; bytes && at + sizeof(Elf64_Rela) <= bytes->size();
         at += sizeof(Elf64_Rela)) {
      Elf64_Rela entry;
      std::memcpy(&entry, bytes->data() + at, sizeof(entry));
      if (entry.r_offset == address && ELF64_R_SYM(entry.r_info) == 0)
        return static_cast<uint64_t>(entry.r_addend);
    }
    left -= std::min(left, section.bytes);
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

Result<GoTable> find_go_table(const ElfFile& elf) {
  DWELL_ASSIGN(std::optional<Found> found, find_table(elf));
  if (!found) return GoTable{};
  DWELL_ASSIGN(const Pclntab table, Pclntab::read(found->bytes));
  uint64_t text_start = 0;
  if (table.lacks_text_start()) {
    auto start = relocated(elf, found->address + table.text_start_at());
    if (!start) start = text_of_same_length(elf, table.text_bytes());
    if (!start) return runtime_error("the pclntab does not say where its text begins");
    text_start = *start;
  }
  return GoTable{std::move(found->bytes), text_start};
}

}  // namespace dwell::symbolize
