// Where the names of symbols stand until they are needed: in string tables of files, from which
// only those that somebody asked for are read, in order of offset.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "symbolize/elf_file.h"

namespace dwell::symbolize {

// Names back to back, each ended by a zero byte. Suffixes may be shared.
class SymbolNames {
 public:
  std::string_view at(uint32_t offset) const { return bytes_.c_str() + offset; }
  uint32_t add(std::string_view name);
  // Room for so many more bytes: memory that is not written costs nothing, growing by halves does.
  void reserve(size_t bytes) { bytes_.reserve(bytes_.size() + bytes); }
  size_t size() const { return bytes_.size(); }

 private:
  std::string bytes_;
};

// Part of a file, read in order of offset through a window: a gigabyte costs one pass and 64 KiB.
class SectionWindow {
 public:
  static constexpr uint64_t kWindowBytes = 64 << 10;

  SectionWindow(FileBytes file, uint64_t offset, uint64_t bytes)
      : file_(file), offset_(offset), bytes_(bytes) {}
  // A section without bytes in the file is an empty one.
  SectionWindow(FileBytes file, const Section& section);

  // `wanted` bytes at `offset`, fewer at the end of the section or if that is more than a window.
  // Offsets must rise.
  std::string_view at(uint64_t offset, uint64_t wanted);
  // The zero-ended string at `offset`, cut at kWindowBytes; "" if there is none.
  std::string_view text_at(uint64_t offset);
  uint64_t size() const { return bytes_; }

 private:
  std::string_view held(uint64_t offset) const;
  void fill(uint64_t offset);

  FileBytes file_;
  uint64_t offset_;
  uint64_t bytes_;
  uint64_t start_ = 0;
  std::string window_;
};

}  // namespace dwell::symbolize
