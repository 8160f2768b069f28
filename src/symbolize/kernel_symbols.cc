#include "symbolize/kernel_symbols.h"

#include <algorithm>
#include <charconv>

namespace dwell::symbolize {
namespace {

std::string_view take_word(std::string_view& rest) {
  const size_t first = std::min(rest.find_first_not_of(" \t"), rest.size());
  rest.remove_prefix(first);
  const size_t end = std::min(rest.find_first_of(" \t"), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(end);
  return word;
}

std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::optional<uint64_t> parse_hex(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (failure != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_text_type(char type) { return type == 't' || type == 'T' || type == 'w' || type == 'W'; }

}  // namespace

KernelSymbols KernelSymbols::parse(std::string_view kallsyms, std::string_view modules) {
  KernelSymbols symbols;
  while (!kallsyms.empty() && symbols.entries_.size() < kSymbolsMax)
    symbols.add_line(take_line(kallsyms));
  symbols.hidden_ =
      !symbols.entries_.empty() && symbols.entries_.back().address == 0 &&
      std::ranges::all_of(symbols.entries_, [](const Entry& entry) { return entry.address == 0; });
  if (symbols.hidden_) symbols.entries_.clear();
  symbols.read_modules(modules);
  symbols.set_ends();
  return symbols;
}

void KernelSymbols::add_line(std::string_view line) {
  std::string_view rest = line;
  const auto address = parse_hex(take_word(rest));
  const std::string_view type = take_word(rest);
  const std::string_view name = take_word(rest);
  std::string_view module = take_word(rest);
  if (!address || type.size() != 1 || name.empty()) return;
  if (module.size() > 2 && module.front() == '[' && module.back() == ']')
    module = module.substr(1, module.size() - 2);
  if (module.empty() && name == "_stext") text_start_ = *address;
  if (module.empty() && name == "_etext" && *address != 0) text_end_ = *address;
  if (!is_text_type(type.front())) return;
  entries_.push_back({*address, 0, static_cast<uint32_t>(names_.size()), module_index(module)});
  names_ += name;
  names_ += '\0';
}

uint16_t KernelSymbols::module_index(std::string_view name) {
  if (name.empty()) return 0;
  // Lines of one module follow each other.
  if (module_names_.back() == name) return static_cast<uint16_t>(module_names_.size() - 1);
  const auto found = std::ranges::find(module_names_, name);
  if (found != module_names_.end()) return static_cast<uint16_t>(found - module_names_.begin());
  if (module_names_.size() == UINT16_MAX) return 0;
  module_names_.emplace_back(name);
  return static_cast<uint16_t>(module_names_.size() - 1);
}

void KernelSymbols::read_modules(std::string_view text) {
  while (!text.empty()) {
    std::string_view rest = take_line(text);
    const std::string_view name = take_word(rest);
    const std::string_view bytes = take_word(rest);
    for (int skipped = 0; skipped < 3; ++skipped) take_word(rest);  // references, users, state
    const auto start = parse_hex(take_word(rest));
    uint64_t size = 0;
    std::from_chars(bytes.data(), bytes.data() + bytes.size(), size);
    if (!start || *start == 0 || size == 0 || size > UINT64_MAX - *start) continue;
    modules_.push_back({std::string(name), *start, *start + size});
  }
  std::ranges::sort(modules_, {}, &KernelModule::start);
}

void KernelSymbols::set_ends() {
  // vmlinux symbols outside its text are boot code, whose memory has long been given back.
  std::erase_if(entries_, [&](const Entry& entry) {
    return entry.module == 0 && !in_vmlinux(entry.address);
  });
  std::ranges::sort(entries_, [&](const Entry& a, const Entry& b) {
    if (a.address != b.address) return a.address < b.address;
    const std::string_view name_a = names_.c_str() + a.name, name_b = names_.c_str() + b.name;
    if (name_a.size() != name_b.size()) return name_a.size() < name_b.size();
    return name_a < name_b;
  });
  const auto rest = std::ranges::unique(entries_, {}, &Entry::address);
  entries_.erase(rest.begin(), rest.end());
  for (size_t i = 0; i < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    const bool has_next = i + 1 < entries_.size();
    const bool same_module = has_next && entries_[i + 1].module == entry.module;
    const KernelModule* module = module_of(entry.address);
    uint64_t reach = same_module || module != nullptr ? UINT64_MAX : kLastReach;
    // The next program may be far away: memory between two BPF programs is often free.
    if (is_bpf(entry)) reach = kBpfReach;
    uint64_t end = entry.address + std::min(reach, UINT64_MAX - entry.address);
    if (has_next) end = std::min(end, entries_[i + 1].address);
    if (entry.module == 0) end = std::min(end, text_end_);
    if (module != nullptr) end = std::min(end, module->end);
    entry.end = end;
  }
}

const KernelModule* KernelSymbols::module_of(uint64_t address) const {
  const auto after = std::ranges::upper_bound(modules_, address, {}, &KernelModule::start);
  if (after == modules_.begin()) return nullptr;
  const KernelModule& module = *std::prev(after);
  return address < module.end ? &module : nullptr;
}

std::optional<KernelSymbol> KernelSymbols::find(uint64_t address) const {
  const auto after = std::ranges::upper_bound(entries_, address, {}, &Entry::address);
  if (after == entries_.begin()) return std::nullopt;
  const Entry& entry = *std::prev(after);
  if (address >= entry.end) return std::nullopt;
  return KernelSymbol{names_.c_str() + entry.name, module_names_[entry.module], entry.address};
}

void KernelSymbols::add_bpf(uint64_t address, uint32_t bytes, std::string_view name) {
  if (bytes == 0 || bytes > UINT64_MAX - address || entries_.size() >= kSymbolsMax) return;
  const uint64_t end = address + bytes;
  if (names_.size() + name.size() >= kTextMax) return;
  // What lay there before is gone, or the kernel could not have given out the memory.
  auto first = std::ranges::upper_bound(entries_, address, {}, &Entry::address);
  while (first != entries_.begin() && is_bpf(*std::prev(first)) && std::prev(first)->end > address)
    --first;
  auto last = first;
  while (last != entries_.end() && is_bpf(*last) && last->address < end) ++last;
  const auto at = entries_.erase(first, last);
  entries_.insert(at, {address, end, static_cast<uint32_t>(names_.size()), module_index("bpf")});
  names_ += name;
  names_ += '\0';
}

std::string kernel_function_name(std::string_view symbol) {
  constexpr std::string_view kPrefix = "bpf_prog_";
  constexpr size_t kTagDigits = 16;
  const size_t name_at = kPrefix.size() + kTagDigits + 1;
  if (!symbol.starts_with(kPrefix) || symbol.size() <= name_at || symbol[name_at - 1] != '_')
    return std::string(symbol);
  const std::string_view tag = symbol.substr(kPrefix.size(), kTagDigits);
  if (tag.find_first_not_of("0123456789abcdef") != std::string_view::npos)
    return std::string(symbol);
  return "bpf_prog:" + std::string(symbol.substr(name_at));
}

}  // namespace dwell::symbolize
