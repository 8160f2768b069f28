// A perf-PID.map, read whole and in pieces: the pieces must not change what is found.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "symbolize/perf_map.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dwell::symbolize;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  PerfMap whole, pieces;
  whole.append(text);
  for (size_t at = 0; at < size; at += 7) pieces.append(text.substr(at, 7));
  for (uint64_t address = 0; address < 0x4000; address += 13) {
    const auto a = whole.find(address), b = pieces.find(address);
    if (a.has_value() != b.has_value()) std::abort();
    if (a && (a->name != b->name || a->address > address)) std::abort();
  }
  return 0;
}
