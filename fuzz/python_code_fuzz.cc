// A code object of a hostile process: its memory is the input, at every address, and its line
// table; the same bytes are the offsets that an interpreter of 3.13 or 3.14 tells.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "python/code_object.h"
#include "python/line_table.h"

namespace {

void read_object(const dwell::python::Layout& layout, const uint8_t* data, size_t size) {
  using namespace dwell::python;
  size_t reads = 0;
  const ReadMemory read = [&](uint64_t address, void* to, size_t bytes) {
    if (++reads > 64 || bytes > kLineTableMax) std::abort();  // a bounded number of bounded reads
    const size_t at = size == 0 ? 0 : address % size;
    if (bytes > size - at) return false;
    std::memcpy(to, data + at, bytes);
    return true;
  };
  const auto identity = read_identity(read, layout.objects, 64);
  if (!identity) return;
  const auto code = read_code(read, layout.objects, *identity);
  if (!code) return;
  // UTF-8 takes up to four bytes for a character.
  if (code->name.size() > 4 * kNameCharactersMax) std::abort();
  if (code->filename.size() > 4 * kFileCharactersMax) std::abort();
  line_of(code->line_table, identity->first_line, 1000);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dwell::python;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read_object(*find_layout(0x030b02f0, ""), data, size);
  for (const uint32_t version : {0x030d00f0u, 0x030e00f0u}) {
    const auto told = find_layout(version, bytes.substr(0, kDebugOffsetsBytes));
    if (!told) continue;
    if (told->frames.frame_bytes > DWELL_PYTHON_FRAME_BYTES) std::abort();
    read_object(*told, data, size);
  }
  const uint32_t first = line_of(bytes, 1, 0);
  if (first > 0x7fffffff) std::abort();
  for (uint32_t instruction = 1; instruction < 4096; instruction *= 3)
    line_of(bytes, 1, instruction);
  return 0;
}
