// The functions of one object, sorted by address: which function holds an address?
//
// Rules (each was a bug somewhere): a sized symbol never matches past its end; an unsized one
// reaches to the next symbol of its section if it comes from a full table, and matches only its
// exact start if it comes from .dynsym, where the next exported symbol may be a megabyte away;
// a nested symbol wins inside itself and its enclosing one around it; of several names of one
// address always the same, plainest one is chosen.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/frame.h"
#include "symbolize/symbol_names.h"

namespace dwell::symbolize {

enum class Binding : uint8_t { kGlobal, kWeak, kLocal };

// A candidate, as read from a table.
struct Symbol {
  uint64_t address = 0;
  uint32_t bytes = 0;  // 0: unsized; longer ones are cut
  uint32_t reach =
      0;              // an unsized symbol ends so far behind its start at most; 0: exact start only
  uint32_t name = 0;  // into SymbolNames or, until it is read, the string table `source`
  Binding binding = Binding::kGlobal;
  bool typed = true;  // declared a function; else a label in a text section
  Resolution how = Resolution::kSymtab;
  uint8_t source = 0;  // 0: SymbolNames
};
static_assert(sizeof(Symbol) == 24);

class SymbolTable {
 public:
  struct Match {
    std::string_view name;  // valid as long as the table
    uint64_t address = 0;
    Resolution how = Resolution::kNone;
  };

  SymbolTable() = default;
  // All names are in `names`.
  SymbolTable(std::vector<Symbol> symbols, SymbolNames names);

  std::optional<Match> find(uint64_t address) const;
  size_t size() const { return entries_.size(); }
  size_t memory_bytes() const;

 private:
  struct Entry {
    uint64_t address;
    uint32_t bytes;
    uint32_t name;
    uint32_t enclosing;  // nearest earlier entry that ends after this one, or kNone
    Resolution how;
  };
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr int kNestingMax = 256;  // steps outward before a look-up gives up

  void add_entries(const std::vector<Symbol>& chosen);
  void link_enclosing();

  std::vector<Entry> entries_;
  SymbolNames names_;
};

// True if `a` is the better of two names of one address. Total and independent of input order.
bool plainer_name(std::string_view a, std::string_view b);

}  // namespace dwell::symbolize
