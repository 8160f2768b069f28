// For tests: writes a jitdump.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

namespace dwell::symbolize {

class JitDumpWriter {
 public:
  JitDumpWriter() {
    for (const uint32_t word : {0x4a695444u, 1u, 40u, 62u, 0u, 4711u}) put(word);
    put(uint64_t{1'000'000});  // time
    put(uint64_t{0});          // flags
  }
  JitDumpWriter& record(uint32_t kind, const std::string& body) {
    put(kind);
    put(static_cast<uint32_t>(16 + body.size()));
    put(uint64_t{2'000'000});
    bytes_ += body;
    return *this;
  }
  JitDumpWriter& load(uint64_t index, uint64_t address, uint64_t code_bytes,
                      const std::string& name, size_t code_written = 16) {
    return record(0, numbers({4711, address, address, code_bytes, index}) + name + '\0' +
                         std::string(code_written, '\x90'));
  }
  JitDumpWriter& move(uint64_t index, uint64_t from, uint64_t to, uint64_t code_bytes) {
    return record(1, numbers({4711, from, from, to, code_bytes, index}));
  }
  const std::string& bytes() const { return bytes_; }

 private:
  template <typename T>
  void put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  static std::string numbers(std::initializer_list<uint64_t> values) {
    std::string out;
    for (const uint64_t value : values)
      out.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return out;
  }
  std::string bytes_;
};

}  // namespace dwell::symbolize
