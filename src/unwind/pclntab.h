// Go's pclntab, the table by which a Go program knows its own functions at run time: there also
// when the program is stripped. The forms of Go 1.16, of 1.18 and of 1.20 and newer.
//
// The bytes belong to somebody else: every offset is checked against them, functions whose record
// lies outside are left out, names are cut at kNameMax. Borrows the bytes. Called for names
// (symbolize/go_functions.h) and for frames (unwind/go_functions.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace dwell::unwind {

class Pclntab {
 public:
  static constexpr uint64_t kFunctionsMax = 2'000'000;
  static constexpr size_t kNameMax = 4096;
  static constexpr uint64_t kAlignment = 8;  // of the table in its section, at least

  struct Function {
    uint64_t start = 0;
    uint64_t end = 0;              // behind `start`
    std::string_view name;         // "" if it lies outside the table
    std::string_view frame_sizes;  // encoded; from there to the end of the table
    uint8_t flags = 0;             // funcFlag_*
  };

  // Checks the header. An error if the bytes do not begin with a table of a form that is known.
  // `text_start` is for a table that leaves it open.
  static Result<Pclntab> read(std::string_view table, uint64_t text_start = 0);
  // Where in `bytes` the first table begins.
  static std::optional<uint64_t> find(std::string_view bytes);

  bool is_of_x86_64() const { return pointer_bytes_ == 8 && instruction_bytes_ == 1; }
  // Whether addresses count from the start of the text: since 1.18. The linker may leave that to a
  // relocation of the field at text_start_at(), and newer ones leave the field empty.
  bool counts_from_text() const { return entry_bytes_ == sizeof(uint32_t); }
  bool lacks_text_start() const { return counts_from_text() && text_start_ == 0; }
  uint64_t text_start_at() const;
  // From the start of the text to the end of the last function.
  uint64_t text_bytes() const { return address_of(count_) - text_start_; }

  uint64_t size() const { return count_; }
  // Nothing if the function makes no sense.
  std::optional<Function> function(uint64_t index) const;

 private:
  Pclntab(std::string_view table, uint64_t text_start) : table_(table), text_start_(text_start) {}
  Status read_header(uint32_t magic);
  std::string_view behind(uint64_t at, uint64_t offset) const;  // empty outside the table
  uint64_t number(uint64_t at, uint64_t bytes) const;           // 0 outside the table
  uint64_t entry(uint64_t index) const;                         // in the table of functions
  uint64_t address_of(uint64_t index) const;  // of the function; at count_: their end

  std::string_view table_;
  uint64_t text_start_ = 0;
  uint64_t pointer_bytes_ = 8;
  uint64_t instruction_bytes_ = 1;  // at least
  uint64_t entry_bytes_ = 0;        // of a number in the table of functions
  uint64_t flags_at_ = 0;           // in a function's record, behind its address
  uint64_t count_ = 0;
  uint64_t names_at_ = 0;
  uint64_t frame_sizes_at_ = 0;
  uint64_t functions_at_ = 0;
};

}  // namespace dwell::unwind
