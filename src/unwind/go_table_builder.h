// Lays out .gopclntab as the linker of Go 1.18 does, for tests.
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
  static constexpr uint64_t kText = 0x2000;
  static constexpr uint8_t kOutermost = 1, kWritesPointer = 2;
  using Steps = std::vector<std::pair<int, uint32_t>>;  // frame's size, for so many bytes of code

  // A function behind the last one, as long as its steps.
  void function(std::string_view name, const Steps& steps, uint8_t flags = 0) {
    uint32_t length = 0;
    for (const auto& step : steps) length += step.second;
    starts_.push_back(code_bytes_);
    code_bytes_ += length;
    std::string record = word(starts_.back()) + word(names_.size()) + word(0) + word(0);
    record += word(sizes_.size());
    record.append(is_1_20_ ? 20 : 16, '\0');
    record += bytes({0, flags, 0, 0});
    records_.push_back(record);
    names_ += std::string(name) + '\0';
    sizes_ += encode(steps);
  }

  void of_go_1_20() { is_1_20_ = true; }  // before the first function

  std::string section() const {
    constexpr uint64_t kHeader = 72;
    std::string out = word(is_1_20_ ? 0xfffffff1 : 0xfffffff0) + bytes({0, 0, 1, 8});
    const uint64_t sizes_at = kHeader + names_.size(), table_at = sizes_at + sizes_.size();
    for (const uint64_t field : {uint64_t{records_.size()}, uint64_t{0}, kText, kHeader,
                                 uint64_t{0}, uint64_t{0}, sizes_at, table_at})
      out += CfiBuilder::fixed<uint64_t>(field);
    return out + names_ + sizes_ + table();
  }

  CfiSource source(const std::string& section) const {
    return {{}, {}, {{0x1000, 0x100000}}, section};
  }

 private:
  static std::string word(uint64_t value) {
    return CfiBuilder::fixed<uint32_t>(static_cast<uint32_t>(value));
  }

  std::string table() const {
    std::string index, records;
    const size_t index_bytes = records_.size() * 8 + 4;
    for (size_t i = 0; i < records_.size(); ++i) {
      index += word(starts_[i]) + word(index_bytes + records.size());
      records += records_[i];
    }
    return index + word(code_bytes_) + records;
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

  bool is_1_20_ = false;
  uint32_t code_bytes_ = 0;
  std::vector<uint32_t> starts_;
  std::vector<std::string> records_;
  std::string names_, sizes_;
};

}  // namespace dwell::unwind
