#include "unwind/pclntab.h"

#include <fmt/format.h>

#include <cstring>

namespace dwell::unwind {
namespace {

// The layouts are those of Go's runtime/symtab.go: pcHeader, functab, _func.
constexpr uint32_t kMagic12 = 0xfffffffb;
constexpr uint32_t kMagic116 = 0xfffffffa;
constexpr uint32_t kMagic118 = 0xfffffff0;
constexpr uint32_t kMagic120 = 0xfffffff1;
constexpr uint64_t kFixedBytes = 8;  // magic, two zeros, least instruction size, pointer size

// In a function's record, behind its address.
constexpr uint64_t kNameAt = 0;
constexpr uint64_t kFrameSizesAt = 12;  // behind name, arguments, deferred calls
constexpr uint64_t kFlagsAt = 33;
constexpr uint64_t kFlagsAt120 = 37;  // the line at which the function begins came before it

bool is_known(uint32_t magic) {
  return magic == kMagic116 || magic == kMagic118 || magic == kMagic120;
}

}  // namespace

std::string_view Pclntab::behind(uint64_t at, uint64_t offset) const {
  if (at >= table_.size() || offset >= table_.size() - at) return {};
  return table_.substr(at + offset);
}

uint64_t Pclntab::number(uint64_t at, uint64_t bytes) const {
  uint64_t value = 0;
  if (at > table_.size() || bytes > table_.size() - at) return 0;
  std::memcpy(&value, table_.data() + at, bytes);  // little endian, as the ELF reader demands
  return value;
}

uint64_t Pclntab::text_start_at() const { return kFixedBytes + 2 * pointer_bytes_; }

Result<Pclntab> Pclntab::read(std::string_view table, uint64_t text_start) {
  Pclntab read(table, text_start);
  const auto magic = static_cast<uint32_t>(read.number(0, sizeof(uint32_t)));
  if (magic == kMagic12) return runtime_error("a pclntab of Go before 1.16");
  if (!is_known(magic)) return runtime_error("no pclntab of a form that is known");
  DWELL_TRY(read.read_header(magic));
  return read;
}

std::optional<uint64_t> Pclntab::find(std::string_view bytes) {
  for (uint64_t at = 0; at + kFixedBytes <= bytes.size(); at += kAlignment) {
    uint32_t magic = 0;  // first, for read() makes up an error for every place that is none
    std::memcpy(&magic, bytes.data() + at, sizeof magic);
    if (is_known(magic) && read(bytes.substr(at))) return at;
  }
  return std::nullopt;
}

Status Pclntab::read_header(uint32_t magic) {
  pointer_bytes_ = number(kFixedBytes - 1, 1);
  instruction_bytes_ = number(kFixedBytes - 2, 1);
  const bool known =
      (pointer_bytes_ == 4 || pointer_bytes_ == 8) &&
      (instruction_bytes_ == 1 || instruction_bytes_ == 2 || instruction_bytes_ == 4);
  if (!known || number(4, 2) != 0) return runtime_error("the header of the pclntab is damaged");
  const bool from_text = magic != kMagic116;
  entry_bytes_ = from_text ? sizeof(uint32_t) : pointer_bytes_;
  flags_at_ = magic == kMagic120 ? kFlagsAt120 : kFlagsAt;
  const auto word = [&](uint64_t i) {
    return number(kFixedBytes + i * pointer_bytes_, pointer_bytes_);
  };
  // Words: functions, files, [start of the text,] then the places of names, units, files,
  // pc tables and functions.
  const uint64_t places = from_text ? 3 : 2;
  count_ = word(0);
  if (!from_text) text_start_ = 0;
  if (from_text && word(2) != 0) text_start_ = word(2);
  names_at_ = word(places);
  frame_sizes_at_ = word(places + 3);
  functions_at_ = word(places + 4);
  if (count_ > kFunctionsMax)
    return runtime_error(
        fmt::format("the pclntab has {} functions, limit {}", count_, kFunctionsMax));
  // Pairs (address, place of the function) and one address more: the end of the last one.
  const uint64_t needed = (2 * count_ + 1) * entry_bytes_;
  const bool fits = functions_at_ <= table_.size() && needed <= table_.size() - functions_at_;
  if (count_ == 0 || !fits || names_at_ >= table_.size())
    return runtime_error("the pclntab is empty or cut off");
  return {};
}

uint64_t Pclntab::entry(uint64_t index) const {
  return number(functions_at_ + index * entry_bytes_, entry_bytes_);
}

uint64_t Pclntab::address_of(uint64_t index) const { return text_start_ + entry(2 * index); }

std::optional<Pclntab::Function> Pclntab::function(uint64_t index) const {
  Function function;
  function.start = address_of(index);
  function.end = address_of(index + 1);
  const uint64_t place = entry(2 * index + 1);
  const uint64_t at = functions_at_ + place + entry_bytes_;  // behind the address
  if (function.end <= function.start || place >= table_.size() || at + flags_at_ >= table_.size())
    return std::nullopt;
  function.name = behind(names_at_, number(at + kNameAt, sizeof(uint32_t))).substr(0, kNameMax);
  function.name = function.name.substr(0, function.name.find('\0'));
  function.frame_sizes = behind(frame_sizes_at_, number(at + kFrameSizesAt, sizeof(uint32_t)));
  function.flags = static_cast<uint8_t>(number(at + flags_at_, 1));
  return function;
}

}  // namespace dwell::unwind
