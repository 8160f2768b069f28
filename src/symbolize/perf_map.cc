#include "symbolize/perf_map.h"

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
  read_bytes_ += text.size();
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
  if (const auto name = code_.add_name(line)) code_.add(*start, *start + *bytes, *name);
}

}  // namespace dwell::symbolize
