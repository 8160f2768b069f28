// Debug sections as linkers compress them: SHF_COMPRESSED with zlib or zstd, and the older way,
// a ".zdebug_" name with a header of its own.
//
// What a section claims to hold is checked against the caller's limit before anything is read, and
// memory is taken as bytes come out, not as they are claimed. Called for unwind data.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "symbolize/elf_file.h"

namespace dwell::symbolize {

// The section NAME (".debug_frame"), decompressed if need be; "" if the file has none. `elf` has
// its sections read. An error if it is damaged or longer than `limit`, in the file or decompressed.
Result<std::string> read_debug_section(const ElfFile& elf, std::string_view name, uint64_t limit);

}  // namespace dwell::symbolize
