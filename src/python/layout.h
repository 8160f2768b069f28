// Where a build of CPython keeps what we read: for the probe, which follows the frames of a thread,
// and for ourselves, who read the code objects.
//
// 3.11 and 3.12 are constants, true of every build of their version with the usual options; from
// 3.13 on the interpreter tells its own, in the _Py_DebugOffsets at the beginning of _PyRuntime.
// What it tells is as hostile as all else in its process: checked here against the bounds that the
// readers rely on. Called by src/symbolize when it meets a file that holds an interpreter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "abi/python.h"
#include "base/result.h"

namespace dwell::python {

// In a code object and in what it points to; bytes.
struct ObjectOffsets {
  uint32_t type = 0;       // in any object: its type,
  uint32_t type_name = 0;  // and in that its name
  uint32_t code_filename = 0;
  uint32_t code_name = 0;  // qualified: "Class.method"
  uint32_t code_line_table = 0;
  uint32_t code_first_line = 0;
  uint32_t bytes_length = 0;
  uint32_t bytes_data = 0;
  uint32_t string_length = 0;
  uint32_t string_state = 0;
  uint32_t string_ascii_data = 0;  // behind the header of a string that is ASCII,
  uint32_t string_other_data = 0;  // and of one that is not
  bool operator==(const ObjectOffsets&) const = default;
};

struct Layout {
  dwell_python_layout frames = {};
  ObjectOffsets objects;
};
bool operator==(const Layout& a, const Layout& b);

constexpr size_t kDebugOffsetsBytes = 1024;  // to read at _PyRuntime, or less if there is less
constexpr uint32_t kOffsetMax = 1 << 20;     // in an interpreter, which is the largest
constexpr uint32_t kCodeBytesMax = 512;      // of a code object's header

// `version`: PY_VERSION_HEX, which the interpreter keeps in the variable Py_Version; `runtime`: the
// first bytes of _PyRuntime, wanted from 3.13 on.
Result<Layout> find_layout(uint32_t version, std::string_view runtime);

}  // namespace dwell::python
