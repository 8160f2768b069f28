#include "symbolize/dwarf_lines.h"

#include <dwarf.h>

#include <algorithm>

namespace dwell::symbolize {
namespace {

std::string text(const char* from) { return from == nullptr ? std::string() : from; }

// The linkage name, which tells overloads apart, else the plain one; of an inlined function by way
// of its abstract one, which may stand in another unit or file.
std::string name_of(Dwarf_Die& die) {
  for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
    Dwarf_Attribute attribute;
    if (dwarf_attr_integrate(&die, name, &attribute) == nullptr) continue;
    const char* linkage = dwarf_formstring(&attribute);
    if (linkage != nullptr && *linkage != '\0') return linkage;
  }
  return text(dwarf_diename(&die));
}

uint64_t number_of(Dwarf_Die& die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_attr(&die, name, &attribute) == nullptr) return 0;
  return dwarf_formudata(&attribute, &value) == 0 ? value : 0;
}

// What may hold a function with code of its own: Rust puts methods into their types.
bool may_hold_functions(int tag) {
  return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_structure_type ||
         tag == DW_TAG_class_type || tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type;
}

bool may_hold_inlined(int tag) {
  return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
         tag == DW_TAG_try_block || tag == DW_TAG_catch_block || tag == DW_TAG_with_stmt;
}

// The child of `parent` that holds the address, if it is one in which to look further.
bool step_inward(Dwarf_Die& parent, uint64_t address, Dwarf_Die& child) {
  if (dwarf_child(&parent, &child) != 0) return false;
  do {
    if (may_hold_inlined(dwarf_tag(&child)) && dwarf_haspc(&child, address) == 1) return true;
  } while (dwarf_siblingof(&child, &child) == 0);
  return false;
}

}  // namespace

Result<DwarfLines::OpenDwarf> DwarfLines::open_dwarf(int file) {
  elf_version(EV_CURRENT);
  OpenDwarf opened;
  // Not by mapping the file: its owner may cut it off at any moment.
  opened.elf.reset(elf_begin(file, ELF_C_READ, nullptr));
  if (!opened.elf) return runtime_error(text(elf_errmsg(-1)));
  opened.dwarf.reset(dwarf_begin_elf(opened.elf.get(), DWARF_C_READ, nullptr));
  if (!opened.dwarf) return runtime_error(text(dwarf_errmsg(-1)));
  return opened;
}

Result<DwarfLines> DwarfLines::open(int file, int alternate) {
  DwarfLines lines;
  DWELL_ASSIGN(lines.main_, open_dwarf(file));
  if (alternate >= 0) {
    DWELL_ASSIGN(lines.alternate_, open_dwarf(alternate));
    dwarf_setalt(lines.main_.dwarf.get(), lines.alternate_.dwarf.get());
  }
  return lines;
}

void DwarfLines::add_ranges(Dwarf_Die& die, std::vector<Range>& out) const {
  Dwarf_Addr base = 0, start = 0, end = 0;
  ptrdiff_t at = 0;
  while (out.size() < kUnitRangesMax && (at = dwarf_ranges(&die, at, &base, &start, &end)) > 0)
    if (end > start) out.push_back({start, end, dwarf_dieoffset(&die)});
}

void DwarfLines::list_units() {
  units_listed_ = true;
  Dwarf_CU* unit = nullptr;
  Dwarf_Half version;
  uint8_t type;
  Dwarf_Die die;
  while (dwarf_get_units(main_.dwarf.get(), unit, &unit, &version, &type, &die, nullptr) == 0)
    add_ranges(die, unit_ranges_);
  std::ranges::sort(unit_ranges_, {}, &Range::start);
}

// The quick way is an index that not all compilers write.
bool DwarfLines::find_unit(uint64_t address, Dwarf_Die& die) {
  if (dwarf_addrdie(main_.dwarf.get(), address, &die) != nullptr) return true;
  if (!units_listed_) list_units();
  const auto after = std::ranges::upper_bound(unit_ranges_, address, {}, &Range::start);
  if (after == unit_ranges_.begin() || std::prev(after)->end <= address) return false;
  return dwarf_offdie(main_.dwarf.get(), std::prev(after)->die, &die) != nullptr;
}

DwarfLines::Unit* DwarfLines::unit_of(uint64_t address) {
  Dwarf_Die die;
  if (!find_unit(address, die)) return nullptr;
  const auto [at, is_new] = units_.try_emplace(dwarf_dieoffset(&die));
  Unit& unit = at->second;
  if (!is_new) return &unit;
  unit.die = die;
  size_t files = 0;
  if (dwarf_getsrcfiles(&unit.die, &unit.files, &files) != 0) unit.files = nullptr;
  list_functions(unit.die, unit, 0);
  std::ranges::sort(unit.functions, {}, &Range::start);
  return &unit;
}

void DwarfLines::list_functions(Dwarf_Die& parent, Unit& unit, int depth) {
  Dwarf_Die child;
  if (depth > kNestingMax || dwarf_child(&parent, &child) != 0) return;
  do {
    const int tag = dwarf_tag(&child);
    if (tag == DW_TAG_subprogram) add_ranges(child, unit.functions);
    if (may_hold_functions(tag)) list_functions(child, unit, depth + 1);
  } while (dwarf_siblingof(&child, &child) == 0);
}

// The function that holds the address, then what is inlined there, inward.
std::vector<Dwarf_Die> DwarfLines::chain_of(const Unit& unit, uint64_t address) const {
  std::vector<Dwarf_Die> chain;
  const auto after = std::ranges::upper_bound(unit.functions, address, {}, &Range::start);
  if (after == unit.functions.begin() || std::prev(after)->end <= address) return chain;
  Dwarf_Die at;
  if (dwarf_offdie(main_.dwarf.get(), std::prev(after)->die, &at) == nullptr) return chain;
  chain.push_back(at);
  Dwarf_Die child;
  for (int depth = 0; depth < kNestingMax && step_inward(at, address, child); ++depth) {
    if (dwarf_tag(&child) == DW_TAG_inlined_subroutine) chain.push_back(child);
    at = child;
  }
  return chain;
}

DwarfLines::Position DwarfLines::line_of(Unit& unit, uint64_t address) {
  Dwarf_Line* line = dwarf_getsrc_die(&unit.die, address);
  int number = 0;
  if (line == nullptr || dwarf_lineno(line, &number) != 0 || number <= 0) return {};
  return {text(dwarf_linesrc(line, nullptr, nullptr)), static_cast<uint32_t>(number)};
}

DwarfLines::Position DwarfLines::call_of(const Unit& unit, Dwarf_Die& inlined) {
  const uint64_t line = number_of(inlined, DW_AT_call_line);
  const uint64_t file = number_of(inlined, DW_AT_call_file);
  if (unit.files == nullptr || line == 0 || line > UINT32_MAX) return {};
  return {text(dwarf_filesrc(unit.files, file, nullptr, nullptr)), static_cast<uint32_t>(line)};
}

SourceChain DwarfLines::find(uint64_t address) {
  Unit* unit = unit_of(address);
  if (unit == nullptr) return {};
  SourceChain chain;
  Position position = line_of(*unit, address);
  std::vector<Dwarf_Die> dies = chain_of(*unit, address);
  for (; !dies.empty(); dies.pop_back()) {
    chain.push_back({name_of(dies.back()), std::move(position.file), position.line});
    position = call_of(*unit, dies.back());
  }
  if (chain.empty() && position.line != 0)  // assembler: lines without functions
    chain.push_back({"", std::move(position.file), position.line});
  return chain;
}

}  // namespace dwell::symbolize
