// Is there a CPython interpreter in an ELF file, and where? It is the file that has the variable
// _PyRuntime: the program itself, or libpython. Called by PythonPrograms, once per file.
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "python/layout.h"
#include "symbolize/file_bytes.h"

namespace dwell::symbolize {

struct PythonFile {
  uint64_t runtime = 0;  // ELF address of _PyRuntime
  python::Layout layout;
};

constexpr uint64_t kPythonSymbolsMax = uint64_t{32} << 20;  // bytes of its dynamic symbols

// Nothing if it holds none; an error if it holds one that cannot be read.
Result<std::optional<PythonFile>> find_python(FileBytes bytes);

}  // namespace dwell::symbolize
