// The unwind data of an ELF file, brought to src/unwind: finds .eh_frame, .debug_frame and the
// table of a Go program's functions by section headers or, where those were stripped, .eh_frame by
// its program header. A .debug_frame that the file lacks is taken from its separate debug file; it
// gives rows only for code of which .eh_frame has none. Called for every file and image that a
// recorded process maps executable.
#pragma once

#include "base/result.h"
#include "symbolize/elf_file.h"
#include "symbolize/symbol_loader.h"
#include "unwind/table.h"

namespace dwell::symbolize {

constexpr uint64_t kUnwindSectionMax = uint64_t{256} << 20;

// The sections' bytes, and where they belong.
struct UnwindData {
  std::string eh_frame;
  std::string debug_frame;
  std::string go_functions;
  uint64_t go_text_start = 0;  // see GoTable
  uint64_t eh_frame_address = 0;
  std::vector<unwind::CodeRange> code;
  std::string build_id;  // of the file: its own word

  unwind::CfiSource source() const {
    return {{eh_frame, eh_frame_address}, {debug_frame, 0}, code, go_functions, go_text_start};
  }
};

// Where the file lies, and where its debug file may lie. Without roots none is looked for.
struct UnwindPlaces {
  std::string path;  // inside the root
  DebugPlaces debug;
};

// An error if the file is no x86-64 ELF file. No unwind data is no error: all sections are empty.
Result<UnwindData> read_unwind_data(FileBytes bytes, const UnwindPlaces& places = {});

class TableCache;
// From the cache if it is there, else compiled and put there. `cache` may be null.
Result<unwind::Table> compile_unwind_table(FileBytes bytes, TableCache* cache = nullptr,
                                           const UnwindPlaces& places = {});

}  // namespace dwell::symbolize
