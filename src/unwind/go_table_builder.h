// Lays out a pclntab as the linkers of Go do, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unwind/cfi_builder.h"

namespace dwell::unwind {

class GoTableBuilder {
 public:
  static constexpr uint32_t kGo116 = 0xfffffffa, kGo118 = 0xfffffff0, kGo120 = 0xfffffff1;
  static constexpr uint64_t kText = 0x2000;
  static constexpr uint8_t kOutermost = 1, kWritesPointer = 2;
  using Steps = std::vector<std::pair<int, uint32_t>>;  // frame's size, for so many bytes of code

  explicit GoTableBuilder(uint32_t form = kGo118, uint8_t pointer_bytes = 8)
      : form_(form), pointer_bytes_(pointer_bytes) {}

  // A function behind the last one, as long as its steps.
  void function(std::string_view name, const Steps& steps, uint8_t flags = 0) {
    starts_.push_back(code_bytes_);
    for (const auto& step : steps) code_bytes_ += step.second;
    std::string record = address(starts_.back());
    for (const size_t field : {names_.size(), size_t{0}, size_t{0}, sizes_.size()})
      record += number(field, 4);
    record.append(form_ == kGo120 ? 20 : 16, '\0');
    record += bytes({0, flags, 0, 0});
    records_.push_back(record);
    names_ += std::string(name) + '\0';
    sizes_ += encode(steps);
  }

  std::string section() const {
    std::string out = number(form_, 4) + bytes({0, 0, 1, pointer_bytes_});
    const auto word = [&](uint64_t value) { out += number(value, pointer_bytes_); };
    word(records_.size());
    word(0);
    if (counts_from_text()) word(kText);
    for (const uint64_t place : {names_at(), size_t{0}, size_t{0}, sizes_at(), index_at(0)})
      word(place);
    return out + names_ + sizes_ + table();
  }

  CfiSource source(const std::string& section) const {
    return {{}, {}, {{0x1000, 0x100000}}, section};
  }

  // Where things lie in the section, to damage them. The index has two numbers for each function,
  // its address and the place of its record, and one more at the end.
  size_t names_at() const { return 8 + (counts_from_text() ? 8u : 7u) * pointer_bytes_; }
  size_t index_at(size_t i) const { return sizes_at() + sizes_.size() + i * entry_bytes(); }
  size_t record_at(size_t function) const {
    size_t at = index_at(2 * records_.size() + 1);
    for (size_t i = 0; i < function; ++i) at += records_[i].size();
    return at;
  }
  size_t name_field_at(size_t function) const { return record_at(function) + entry_bytes(); }

 private:
  bool counts_from_text() const { return form_ != kGo116; }
  size_t entry_bytes() const { return counts_from_text() ? 4 : pointer_bytes_; }
  size_t sizes_at() const { return names_at() + names_.size(); }

  static std::string number(uint64_t value, size_t bytes) {
    return CfiBuilder::fixed<uint64_t>(value).substr(0, bytes);
  }
  std::string address(uint64_t code_at) const {
    return number(counts_from_text() ? code_at : kText + code_at, entry_bytes());
  }

  std::string table() const {
    std::string index, records;
    for (size_t i = 0; i < records_.size(); ++i) {
      index += address(starts_[i]) + number(record_at(i) - index_at(0), entry_bytes());
      records += records_[i];
    }
    return index + address(code_bytes_) + records;
  }

  static std::string encode(const Steps& steps) {
    std::string out;
    int before = -1;
    for (const auto& [size, length] : steps) {
      const int change = size - before;
      out += uleb(static_cast<uint32_t>(change < 0 ? -change * 2 - 1 : change * 2)) + uleb(length);
      before = size;
    }
    return out + '\0';
  }

  static std::string uleb(uint32_t value) {
    std::string out;
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    return out + static_cast<char>(value);
  }

  uint32_t form_;
  uint8_t pointer_bytes_;
  uint32_t code_bytes_ = 0;
  std::vector<uint32_t> starts_;
  std::vector<std::string> records_;
  std::string names_, sizes_;
};

}  // namespace dwell::unwind
