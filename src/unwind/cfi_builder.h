// Assembles call-frame information byte by byte, for tests and for the seeds of the fuzzer.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "unwind/table.h"

namespace dwell::unwind {

using Bytes = std::initializer_list<int>;

inline std::string bytes(Bytes values) {
  std::string out;
  for (const int value : values) out.push_back(static_cast<char>(value));
  return out;
}

class CfiBuilder {
 public:
  static constexpr uint64_t kAddress = 0x9000;  // of the section

  // What compilers write: CFA = rsp + 8, return address at CFA - 8.
  static std::string usual_start() { return bytes({0x0c, 7, 8, 0x90, 1}); }

  // Returns its offset. Pointers are pc-relative, 4 bytes.
  uint32_t cie(std::string_view letters = "zR", std::string_view data = "\x1b",
               std::string_view instructions = usual_start(), int version = 1) {
    std::string body = fixed<uint32_t>(0);
    body += static_cast<char>(version);
    body += letters;
    body += bytes({0, 1, 0x78, 16});  // code alignment 1, data alignment -8, return address in 16
    if (letters.starts_with("z")) (body += static_cast<char>(data.size())) += data;
    return append(body + std::string(instructions));
  }

  uint32_t fde(uint32_t cie, uint64_t start, uint32_t code_bytes, std::string_view instructions) {
    const uint32_t id_at = static_cast<uint32_t>(section_.size()) + 4;
    std::string body = fixed<uint32_t>(id_at - cie);
    body += fixed<uint32_t>(static_cast<uint32_t>(start - (kAddress + id_at + 4)));
    body += fixed<uint32_t>(code_bytes);
    body += '\0';  // no augmentation data
    return append(body + std::string(instructions));
  }

  uint32_t append(std::string_view body) {
    const auto offset = static_cast<uint32_t>(section_.size());
    section_ += fixed<uint32_t>(static_cast<uint32_t>(body.size()));
    section_ += body;
    return offset;
  }
  void append_raw(std::string_view raw) { section_ += raw; }

  const std::string& section() const { return section_; }
  std::string& section() { return section_; }
  CfiSource source(uint64_t code_end = 0x100000) const {
    return {{section_, kAddress}, {}, {{0x1000, code_end}}};
  }

  template <typename Integer>
  static std::string fixed(Integer value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  }

 private:
  std::string section_;
};

}  // namespace dwell::unwind
