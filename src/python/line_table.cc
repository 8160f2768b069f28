#include "python/line_table.h"

#include <cstddef>
#include <limits>

namespace dwell::python {
namespace {

enum EntryKind : uint8_t {
  kOneLineFirst = 10,  // the line goes on by 0, 1 or 2
  kOneLineLast = 12,
  kNoColumns = 13,
  kLong = 14,
  kNone = 15,  // belongs to no line
};

// Seven bits in use, the lowest six of them a digit, the next one says that more follow.
class Numbers {
 public:
  Numbers(std::string_view table, size_t at) : table_(table), at_(at) {}

  int64_t next_signed() {
    const uint64_t number = next();
    const auto magnitude = static_cast<int64_t>(number >> 1);
    return (number & 1) != 0 ? -magnitude : magnitude;
  }

 private:
  uint64_t next() {
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 36 && at_ < table_.size(); shift += 6) {
      const auto byte = static_cast<uint8_t>(table_[at_++]);
      number |= uint64_t{byte & 0x3fu} << shift;
      if ((byte & 0x40) == 0) break;
    }
    return number;
  }
  std::string_view table_;
  size_t at_;
};

int64_t line_change(std::string_view table, size_t entry, uint8_t kind) {
  if (kind >= kOneLineFirst && kind <= kOneLineLast) return kind - kOneLineFirst;
  if (kind == kNoColumns || kind == kLong) return Numbers(table, entry + 1).next_signed();
  return 0;
}

}  // namespace

uint32_t line_of(std::string_view table, uint32_t first_line, uint32_t instruction) {
  int64_t line = first_line;
  uint64_t end = 0;  // of what the entries so far cover
  for (size_t at = 0; at < table.size();) {
    const auto head = static_cast<uint8_t>(table[at]);
    const uint8_t kind = head >> 3 & 15;
    line += line_change(table, at, kind);
    end += (head & 7u) + 1;
    if (instruction < end) {
      const bool known = kind != kNone && line > 0 && line <= std::numeric_limits<int32_t>::max();
      return known ? static_cast<uint32_t>(line) : 0;
    }
    do ++at;
    while (at < table.size() && (static_cast<uint8_t>(table[at]) & 0x80) == 0);
  }
  return 0;
}

}  // namespace dwell::python
