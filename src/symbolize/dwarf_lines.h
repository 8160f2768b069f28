// Source lines and inlined functions out of a file's DWARF, by libdw.
//
// libdw keeps all that it has touched and is no match for hostile data, so this runs in a process
// of its own (line_process.h), which ends with the file. One unit is looked at once: its functions
// are listed when the first address of it is asked for.
#pragma once

#include <elfutils/libdw.h>
#include <libelf.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/result.h"

namespace dwell::symbolize {

struct SourceFrame {
  std::string function;  // linkage name if it has one, "" if unknown
  std::string file;
  uint32_t line = 0;  // 0: unknown
};
// Innermost inlined function first; the last one is the function that holds the address. Empty if
// nothing is known of the address.
using SourceChain = std::vector<SourceFrame>;

class DwarfLines {
 public:
  static constexpr size_t kUnitRangesMax = 1 << 23;
  static constexpr int kNestingMax = 64;  // of namespaces, and of inlined functions

  // The files stay open as long as this lives. `alternate`: dwz's file, -1 if there is none.
  static Result<DwarfLines> open(int file, int alternate);
  SourceChain find(uint64_t address);

 private:
  template <typename T>
  using Handle = std::unique_ptr<T, int (*)(T*)>;
  struct OpenDwarf {
    Handle<Elf> elf{nullptr, elf_end};
    Handle<Dwarf> dwarf{nullptr, dwarf_end};
  };
  struct Range {
    uint64_t start, end;
    Dwarf_Off die;
  };
  struct Unit {
    Dwarf_Die die = {};
    Dwarf_Files* files = nullptr;
    std::vector<Range> functions;  // by start
  };
  struct Position {
    std::string file;
    uint32_t line = 0;
  };

  static Result<OpenDwarf> open_dwarf(int file);
  Unit* unit_of(uint64_t address);
  bool find_unit(uint64_t address, Dwarf_Die& die);
  void list_units();
  void list_functions(Dwarf_Die& parent, Unit& unit, int depth);
  void add_ranges(Dwarf_Die& die, std::vector<Range>& out) const;
  std::vector<Dwarf_Die> chain_of(const Unit& unit, uint64_t address) const;
  static Position line_of(Unit& unit, uint64_t address);
  static Position call_of(const Unit& unit, Dwarf_Die& inlined);

  OpenDwarf alternate_;  // outlives main_, which refers to it
  OpenDwarf main_;
  std::unordered_map<Dwarf_Off, Unit> units_;
  std::vector<Range> unit_ranges_;  // by start; empty until an address is in no .debug_aranges
  bool units_listed_ = false;
};

}  // namespace dwell::symbolize
