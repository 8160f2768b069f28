#include "symbolize/symbol_choice.h"

#include <algorithm>
#include <tuple>

namespace dwell::symbolize {
namespace {

bool is_alike(const Symbol& a, const Symbol& b) {
  return a.address == b.address && a.bytes == b.bytes && a.binding == b.binding;
}

uint64_t last_of(const Symbol& symbol) {
  return symbol.address + std::min<uint64_t>(symbol.bytes - 1, UINT64_MAX - symbol.address);
}

// Gives each unsized symbol its end: where the next address with a symbol lies.
void settle_ends(std::vector<Symbol>& symbols) {
  uint64_t next = UINT64_MAX, address = UINT64_MAX;
  for (auto symbol = symbols.rbegin(); symbol != symbols.rend(); ++symbol) {
    if (symbol->address != address) next = symbol == symbols.rbegin() ? UINT64_MAX : address;
    address = symbol->address;
    if (symbol->bytes == 0) symbol->bytes = bytes_up_to(*symbol, next);
  }
}

// The first of each address: what SymbolTable would choose, but for its name.
void drop_lesser(std::vector<Symbol>& symbols) {
  const Symbol* first = nullptr;
  Symbol kept;
  std::erase_if(symbols, [&](const Symbol& symbol) {
    if (first == nullptr || symbol.address != kept.address) {
      kept = symbol;
      first = &kept;
    }
    return !is_alike(symbol, kept);
  });
}

}  // namespace

uint32_t bytes_up_to(const Symbol& symbol, uint64_t next) {
  const uint64_t gap = next > symbol.address ? next - symbol.address : 0;
  return static_cast<uint32_t>(std::max<uint64_t>(1, std::min<uint64_t>(gap, symbol.reach)));
}

void drop_inner_labels(std::vector<Symbol>& symbols) {
  uint64_t end = 0;
  std::erase_if(symbols, [&](const Symbol& symbol) {
    if (symbol.bytes == 0) return symbol.address < end;
    end = std::max(end,
                   symbol.address + std::min<uint64_t>(symbol.bytes, UINT64_MAX - symbol.address));
    return false;
  });
}

void keep_holders(std::vector<Symbol>& symbols, std::span<const uint64_t> addresses) {
  std::ranges::sort(symbols, [](const Symbol& a, const Symbol& b) {
    return std::tuple(a.address, ~a.bytes, a.binding) < std::tuple(b.address, ~b.bytes, b.binding);
  });
  drop_lesser(symbols);
  drop_inner_labels(symbols);
  settle_ends(symbols);
  std::vector<bool> kept(symbols.size());
  std::vector<uint32_t> open;  // hold addresses to come; each ends before the one below it
  size_t next = 0;
  for (const uint64_t address : addresses) {
    for (; next < symbols.size() && symbols[next].address <= address; ++next) {
      if (next > 0 && symbols[next].address == symbols[next - 1].address) continue;
      while (!open.empty() && last_of(symbols[open.back()]) <= last_of(symbols[next]))
        open.pop_back();
      open.push_back(static_cast<uint32_t>(next));
    }
    while (!open.empty() && last_of(symbols[open.back()]) < address) open.pop_back();
    if (!open.empty()) kept[open.back()] = true;
  }
  // Those that are alike stand behind the first of them.
  for (size_t i = 1; i < symbols.size(); ++i)
    if (symbols[i].address == symbols[i - 1].address) kept[i] = kept[i - 1];
  size_t index = 0;
  std::erase_if(symbols, [&](const Symbol&) { return !kept[index++]; });
}

}  // namespace dwell::symbolize
