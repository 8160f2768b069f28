#include "symbolize/pclntab.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace dwell::symbolize {
namespace {

constexpr uint32_t kMagic12 = 0xfffffffb;
constexpr uint32_t kMagic116 = 0xfffffffa;
constexpr uint32_t kMagic118 = 0xfffffff0;
constexpr uint32_t kMagic120 = 0xfffffff1;
constexpr uint64_t kFixedBytes = 8;  // magic, two zeros, least instruction size, pointer size

}  // namespace

uint64_t Pclntab::number(uint64_t at, uint64_t bytes) const {
  uint64_t value = 0;
  if (at > table_.size() || bytes > table_.size() - at) return 0;
  std::memcpy(&value, table_.data() + at, bytes);  // little endian, as the ELF reader demands
  return value;
}

uint64_t Pclntab::text_start_at() const { return kFixedBytes + 2 * pointer_bytes_; }

Result<Pclntab> Pclntab::read(std::string_view table) {
  Pclntab read(table);
  const auto magic = static_cast<uint32_t>(read.number(0, sizeof(uint32_t)));
  if (magic == kMagic12) return runtime_error("a pclntab of Go before 1.16");
  if (magic != kMagic116 && magic != kMagic118 && magic != kMagic120)
    return runtime_error("no pclntab of a form that is known");
  DWELL_TRY(read.read_header(magic));
  return read;
}

Status Pclntab::read_header(uint32_t magic) {
  pointer_bytes_ = number(kFixedBytes - 1, 1);
  const uint64_t instruction = number(kFixedBytes - 2, 1);
  const bool known = (pointer_bytes_ == 4 || pointer_bytes_ == 8) &&
                     (instruction == 1 || instruction == 2 || instruction == 4);
  if (!known || number(4, 2) != 0) return runtime_error("the header of the pclntab is damaged");
  const bool from_text = magic != kMagic116;
  entry_bytes_ = from_text ? sizeof(uint32_t) : pointer_bytes_;
  const auto word = [&](uint64_t i) {
    return number(kFixedBytes + i * pointer_bytes_, pointer_bytes_);
  };
  // Words: functions, files, [start of the text,] then the places of names, units, files,
  // pc tables and functions.
  const uint64_t places = from_text ? 3 : 2;
  count_ = word(0);
  text_start_ = from_text ? word(2) : 0;
  names_at_ = word(places);
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

uint64_t Pclntab::address_of(uint64_t index) const {
  return text_start_ + number(functions_at_ + 2 * index * entry_bytes_, entry_bytes_);
}

uint64_t Pclntab::text_bytes() const { return address_of(count_) - text_start_; }

std::string_view Pclntab::name_of(uint64_t index) const {
  const uint64_t place = number(functions_at_ + (2 * index + 1) * entry_bytes_, entry_bytes_);
  // A function begins with its address; the place of its name follows.
  const uint64_t at = functions_at_ + place + entry_bytes_;
  if (place >= table_.size() || at + sizeof(uint32_t) > table_.size()) return {};
  const uint64_t name = names_at_ + number(at, sizeof(uint32_t));
  if (name >= table_.size()) return {};
  const char* text = table_.data() + name;
  return {text, strnlen(text, std::min<uint64_t>(kNameMax, table_.size() - name))};
}

std::vector<GoFunction> Pclntab::functions() const {
  std::vector<GoFunction> all;
  all.reserve(count_);
  for (uint64_t i = 0; i < count_; ++i) {
    const uint64_t start = address_of(i), end = address_of(i + 1);
    const std::string_view name = name_of(i);
    if (end > start && !name.empty()) all.push_back({start, end - start, name});
  }
  return all;
}

}  // namespace dwell::symbolize
