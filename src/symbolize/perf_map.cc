#include "symbolize/perf_map.h"

#include <algorithm>
#include <charconv>

namespace dwell::symbolize {
namespace {

std::optional<uint64_t> take_hex(std::string_view& rest) {
  if (rest.starts_with("0x") || rest.starts_with("0X")) rest.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), value, 16);
  if (failure != std::errc{}) return std::nullopt;
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  if (!rest.empty() && rest.front() != ' ' && rest.front() != '\t') return std::nullopt;
  if (!rest.empty()) rest.remove_prefix(1);
  return value;
}

}  // namespace

void PerfMap::append(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view piece = text.substr(0, end);
    if (unfinished_.size() + piece.size() > kLineMax) {
      skipping_ = true;
      unfinished_.clear();
    }
    if (!skipping_) unfinished_ += piece;
    if (end == std::string_view::npos) return;
    if (!skipping_) add_line(unfinished_);
    skipping_ = false;
    unfinished_.clear();
    text.remove_prefix(end + 1);
  }
}

void PerfMap::add_line(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const auto start = take_hex(line);
  const auto bytes = start ? take_hex(line) : std::nullopt;
  if (!bytes || *bytes == 0 || *bytes > UINT64_MAX - *start) return;
  add(*start, *start + *bytes, line);
}

uint32_t PerfMap::add_name(std::string_view name) {
  const auto offset = static_cast<uint32_t>(names_.size());
  for (const char c : name)
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) names_ += c;
  names_ += '\0';
  return offset;
}

void PerfMap::add(uint64_t start, uint64_t end, std::string_view name) {
  if (entries_.size() >= kEntriesMax || names_.size() + name.size() >= kNamesMax) {
    full_ = true;
    return;
  }
  auto at = entries_.lower_bound(start);
  if (at != entries_.begin()) {
    const auto before = std::prev(at);
    const Entry old = before->second;
    if (old.end > end) entries_.emplace(end, old);
    if (old.end > start) before->second.end = start;
    at = std::next(before);
  }
  while (at != entries_.end() && at->first < end) {
    const Entry old = at->second;
    at = entries_.erase(at);
    if (old.end > end) {
      entries_.emplace(end, old);
      break;
    }
  }
  entries_[start] = {end, add_name(name), start};
}

std::optional<PerfMap::Match> PerfMap::find(uint64_t address) const {
  auto after = entries_.upper_bound(address);
  if (after == entries_.begin()) return std::nullopt;
  const Entry& entry = std::prev(after)->second;
  const std::string_view name = names_.c_str() + entry.name;
  if (address >= entry.end || name.empty()) return std::nullopt;
  return Match{name, entry.address};
}

}  // namespace dwell::symbolize
