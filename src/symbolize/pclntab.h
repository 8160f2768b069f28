// Go's pclntab, the table by which a Go program names its own functions at run time: there also
// when the program is stripped. The forms of Go 1.16, of 1.18 and of 1.20 and newer.
//
// The bytes belong to somebody else: every offset is checked against them, functions whose entry
// makes no sense are left out, names are cut at kNameMax. Borrows the bytes. Called by the reader
// of Go programs (go_functions.h).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace dwell::symbolize {

struct GoFunction {
  uint64_t address = 0;
  uint64_t bytes = 0;
  std::string_view name;  // into the table
};

class Pclntab {
 public:
  static constexpr uint64_t kFunctionsMax = 2'000'000;
  static constexpr size_t kNameMax = 4096;
  static constexpr uint64_t kAlignment = 8;  // of the table in its section, at least

  // Checks the header. An error if the bytes do not begin with a table of a form that is known.
  static Result<Pclntab> read(std::string_view table);

  // Whether addresses count from the start of the text: since 1.18. The linker may leave that to a
  // relocation of the field at text_start_at(), and newer ones leave the field empty.
  bool counts_from_text() const { return entry_bytes_ == sizeof(uint32_t); }
  uint64_t text_start_at() const;
  uint64_t text_start() const { return text_start_; }
  void set_text_start(uint64_t address) { text_start_ = address; }
  // From the start of the text to the end of the last function.
  uint64_t text_bytes() const;

  std::vector<GoFunction> functions() const;

 private:
  explicit Pclntab(std::string_view table) : table_(table) {}
  Status read_header(uint32_t magic);
  uint64_t number(uint64_t at, uint64_t bytes) const;  // 0 outside the table
  uint64_t address_of(uint64_t index) const;           // of the function; at count_: their end
  std::string_view name_of(uint64_t index) const;

  std::string_view table_;
  uint64_t pointer_bytes_ = 8;
  uint64_t entry_bytes_ = 0;  // of a number in the table of functions
  uint64_t count_ = 0;
  uint64_t text_start_ = 0;
  uint64_t names_at_ = 0;
  uint64_t functions_at_ = 0;
};

}  // namespace dwell::symbolize
