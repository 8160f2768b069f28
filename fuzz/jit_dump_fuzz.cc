// A jit-PID.dump, read whole and as it is followed, piece by piece: the pieces must not change what
// is found.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "symbolize/jit_dump.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dwell::symbolize;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  JitDump whole, pieces;
  whole.append(bytes);
  for (size_t written = 0; written <= size; written += 1 + size / 64) {
    const uint64_t from = pieces.next_offset();
    if (from < written) pieces.append(bytes.substr(from, written - from));
  }
  if (pieces.next_offset() < size) pieces.append(bytes.substr(pieces.next_offset()));
  if (whole.damage() != pieces.damage() || whole.size() != pieces.size()) std::abort();
  for (uint64_t address = 0; address < 0x4000; address += 13) {
    const auto a = whole.find(address), b = pieces.find(address);
    if (a.has_value() != b.has_value()) std::abort();
    if (a && (a->name != b->name || a->address > address)) std::abort();
  }
  return 0;
}
