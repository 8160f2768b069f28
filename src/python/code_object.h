// Reads a code object of CPython out of the memory of its process: what the function is called, in
// which file it stands, and which instruction belongs to which line.
//
// Nothing there is trusted: the object may have been freed, be of another type, or be made up.
// Every length has a bound, and no pointer is followed further than this needs. Called by
// src/symbolize, on a thread that may be left behind.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "python/layout.h"

namespace dwell::python {

// Fills all of `to`, or returns false.
using ReadMemory = std::function<bool(uint64_t address, void* to, size_t bytes)>;

constexpr size_t kNameCharactersMax = 1024;  // longer ones are cut
constexpr size_t kFileCharactersMax = 4096;  // PATH_MAX
constexpr size_t kLineTableMax = 256 << 10;  // of a longer one no lines are known

// What a code object refers to: equal for the same object, most likely not for another that took
// its place.
struct CodeIdentity {
  uint64_t type = 0, name = 0, filename = 0, line_table = 0;
  uint32_t first_line = 0;
  bool operator==(const CodeIdentity&) const = default;
};

struct CodeObject {
  CodeIdentity identity;
  std::string name;      // qualified; UTF-8
  std::string filename;  // as bytes: what is no UTF-8 in the file system is none here
  std::string line_table;
};

std::optional<CodeIdentity> read_identity(const ReadMemory& read, const ObjectOffsets& offsets,
                                          uint64_t address);
// The whole of it. Nothing if it is no code object (any more).
std::optional<CodeObject> read_code(const ReadMemory& read, const ObjectOffsets& offsets,
                                    const CodeIdentity& identity);

}  // namespace dwell::python
