#include "symbolize/jit_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace dwell::symbolize {
namespace {

constexpr uint32_t kMagic = 0x4a695444;         // "JiTD"
constexpr uint32_t kMagicSwapped = 0x4454694a;  // of a machine of the other byte order
constexpr uint32_t kVersion = 1;

struct Header {
  uint32_t magic, version, total_bytes, machine, padding, pid;
  uint64_t time, flags;
};
static_assert(sizeof(Header) == 40);

enum RecordKind : uint32_t { kLoad = 0, kMove = 1, kDebugInfo = 2, kClose = 3, kUnwinding = 4 };
struct Prefix {
  uint32_t kind, total_bytes;
  uint64_t time;
};
static_assert(sizeof(Prefix) == 16);

// Name and code follow.
struct Load {
  uint32_t pid, tid;
  uint64_t address, code_address, code_bytes, index;
};
static_assert(sizeof(Load) == 40);

struct Move {
  uint32_t pid, tid;
  uint64_t address, old_code_address, new_code_address, code_bytes, index;
};
static_assert(sizeof(Move) == 48);

template <typename T>
bool read_at(std::string_view bytes, size_t at, T& out) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return false;
  std::memcpy(&out, bytes.data() + at, sizeof(T));
  return true;
}

bool is_range(uint64_t start, uint64_t bytes) { return bytes > 0 && bytes <= UINT64_MAX - start; }

}  // namespace

void JitDump::append(std::string_view bytes) {
  while (!full()) {
    const uint64_t taken = next_ == 0 ? take_header(bytes) : take_record(bytes);
    next_ += taken;
    if (taken == 0 || taken > bytes.size()) return;
    bytes.remove_prefix(taken);
  }
}

uint64_t JitDump::take_header(std::string_view bytes) {
  Header header;
  if (!read_at(bytes, 0, header)) return 0;
  if (header.magic == kMagicSwapped) {
    damage_ = "is of a machine of another byte order";
  } else if (header.magic != kMagic) {
    damage_ = "is no jitdump";
  } else if (header.version != kVersion) {
    damage_ = fmt::format("has version {}, which is not known", header.version);
  } else if (header.total_bytes < sizeof(header)) {
    damage_ = "has a damaged header";
  }
  return damage_.empty() ? header.total_bytes : 0;
}

uint64_t JitDump::take_record(std::string_view bytes) {
  Prefix prefix;
  if (!read_at(bytes, 0, prefix)) return 0;
  if (prefix.total_bytes < sizeof(prefix)) {
    damage_ = fmt::format("is damaged at byte {}", next_);
    return 0;
  }
  const std::string_view record = bytes.substr(sizeof(prefix), prefix.total_bytes - sizeof(prefix));
  if (prefix.kind == kLoad && !take_load(record, prefix.total_bytes - sizeof(prefix))) return 0;
  if (prefix.kind == kMove) {
    if (record.size() < std::min(sizeof(Move), prefix.total_bytes - sizeof(prefix))) return 0;
    take_move(record);
  }
  closed_ = prefix.kind == kClose;
  return prefix.total_bytes;  // also of kinds that say nothing about names
}

// False if the record is cut off before the end of the name.
bool JitDump::take_load(std::string_view record, uint64_t record_bytes) {
  Load load;
  if (record_bytes < sizeof(load)) return true;  // nonsense
  if (!read_at(record, 0, load)) return false;
  const uint64_t name_room = std::min<uint64_t>(record_bytes - sizeof(load), kNameMax);
  const std::string_view text = record.substr(sizeof(load), name_room);
  const size_t end = text.find('\0');
  if (end == std::string_view::npos) return text.size() == name_room;
  if (!is_range(load.code_address, load.code_bytes)) return true;
  const auto name = code_.add_name(text.substr(0, end));
  if (!name) return true;
  code_.add(load.code_address, load.code_address + load.code_bytes, *name);
  if (functions_.size() < kFunctionsMax) functions_[load.index] = *name;
  return true;
}

void JitDump::take_move(std::string_view record) {
  Move move;
  if (!read_at(record, 0, move) || !is_range(move.new_code_address, move.code_bytes)) return;
  const auto function = functions_.find(move.index);
  if (function == functions_.end()) return;
  code_.add(move.new_code_address, move.new_code_address + move.code_bytes, function->second);
}

}  // namespace dwell::symbolize
