#include "symbolize/code_ranges.h"

namespace dwell::symbolize {

std::optional<CodeRanges::Name> CodeRanges::add_name(std::string_view name) {
  if (names_.size() + name.size() >= kNamesMax) {
    full_ = true;
    return std::nullopt;
  }
  const auto offset = static_cast<Name>(names_.size());
  for (const char c : name)
    if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) names_ += c;
  names_ += '\0';
  return offset;
}

void CodeRanges::add(uint64_t start, uint64_t end, Name name) {
  if (pieces_.size() >= kPiecesMax) {
    full_ = true;
    return;
  }
  uncover(start, end);
  pieces_[start] = {end, name, start};
}

// Cuts what lies in the range out of the pieces that are there.
void CodeRanges::uncover(uint64_t start, uint64_t end) {
  auto at = pieces_.lower_bound(start);
  if (at != pieces_.begin()) {
    const auto before = std::prev(at);
    const Piece old = before->second;
    if (old.end > end) pieces_.emplace(end, old);
    if (old.end > start) before->second.end = start;
    at = std::next(before);
  }
  while (at != pieces_.end() && at->first < end) {
    const Piece old = at->second;
    at = pieces_.erase(at);
    if (old.end > end) {
      pieces_.emplace(end, old);
      break;
    }
  }
}

std::optional<CodeRanges::Match> CodeRanges::find(uint64_t address) const {
  auto after = pieces_.upper_bound(address);
  if (after == pieces_.begin()) return std::nullopt;
  const Piece& piece = std::prev(after)->second;
  const std::string_view name = names_.c_str() + piece.name;
  if (address >= piece.end || name.empty()) return std::nullopt;
  return Match{name, piece.address};
}

}  // namespace dwell::symbolize
