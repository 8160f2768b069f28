#include "symbolize/symbol_table.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "symbolize/symbol_choice.h"

namespace dwell::symbolize {
namespace {

size_t leading_underscores(std::string_view name) {
  const size_t first = name.find_first_not_of('_');
  return first == std::string_view::npos ? name.size() : first;
}

// Marks of names that compilers and libc make for a function that has a plain name as well.
bool is_made_up(std::string_view name) {
  constexpr std::array<std::string_view, 4> kPrefixes{"__GI_", "__libc_", "__new_", "__pfx_"};
  constexpr std::array<std::string_view, 5> kParts{".localalias", ".constprop", ".isra", ".part",
                                                   ".cold"};
  return std::ranges::any_of(kPrefixes, [&](auto prefix) { return name.starts_with(prefix); }) ||
         std::ranges::any_of(kParts, [&](auto part) { return name.find(part) != name.npos; });
}

auto name_rank(std::string_view name) {
  return std::tuple(leading_underscores(name), is_made_up(name), name.find('@') != name.npos,
                    name.size(), name);
}

// Keeps one symbol per address: the first after sorting by preference.
void sort_and_choose(std::vector<Symbol>& symbols, const SymbolNames& names) {
  std::ranges::sort(symbols, [&](const Symbol& a, const Symbol& b) {
    if (a.address != b.address) return a.address < b.address;
    if (a.bytes != b.bytes) return a.bytes > b.bytes;
    if (a.binding != b.binding) return a.binding < b.binding;
    if (a.name != b.name && names.at(a.name) != names.at(b.name))
      return plainer_name(names.at(a.name), names.at(b.name));
    return a.how < b.how;
  });
  const auto rest = std::ranges::unique(symbols, {}, &Symbol::address);
  symbols.erase(rest.begin(), rest.end());
}

}  // namespace

bool plainer_name(std::string_view a, std::string_view b) { return name_rank(a) < name_rank(b); }

SymbolTable::SymbolTable(std::vector<Symbol> symbols, SymbolNames names)
    : names_(std::move(names)) {
  sort_and_choose(symbols, names_);
  drop_inner_labels(symbols);
  add_entries(symbols);
  link_enclosing();
}

void SymbolTable::add_entries(const std::vector<Symbol>& chosen) {
  entries_.reserve(chosen.size());
  for (size_t i = 0; i < chosen.size(); ++i) {
    const Symbol& symbol = chosen[i];
    const uint64_t next = i + 1 < chosen.size() ? chosen[i + 1].address : UINT64_MAX;
    const uint32_t bytes = symbol.bytes != 0 ? symbol.bytes : bytes_up_to(symbol, next);
    entries_.push_back({symbol.address, bytes, symbol.name, kNone, symbol.how});
  }
}

void SymbolTable::link_enclosing() {
  std::vector<uint32_t> open;  // indexes, ends strictly falling
  const auto end = [&](uint32_t i) { return entries_[i].address + entries_[i].bytes; };
  for (uint32_t i = 0; i < entries_.size(); ++i) {
    while (!open.empty() && end(open.back()) <= end(i)) open.pop_back();
    if (!open.empty()) entries_[i].enclosing = open.back();
    open.push_back(i);
  }
}

std::optional<SymbolTable::Match> SymbolTable::find(uint64_t address) const {
  const auto after = std::ranges::upper_bound(entries_, address, {}, &Entry::address);
  if (after == entries_.begin()) return std::nullopt;
  auto index = static_cast<uint32_t>(after - entries_.begin() - 1);
  for (int step = 0; index != kNone && step < kNestingMax; ++step) {
    const Entry& entry = entries_[index];
    if (address - entry.address < entry.bytes)
      return Match{names_.at(entry.name), entry.address, entry.how};
    index = entry.enclosing;
  }
  return std::nullopt;
}

size_t SymbolTable::memory_bytes() const {
  return entries_.capacity() * sizeof(Entry) + names_.size();
}

}  // namespace dwell::symbolize
