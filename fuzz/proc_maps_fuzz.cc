// /proc/PID/maps with any paths, and /proc/PID/stat with any name.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "symbolize/live_process.h"
#include "symbolize/proc_maps.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dwell::symbolize;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const MapsLine& line : parse_maps(text)) {
    if (line.start >= line.end || line.path.size() > kMapsPathMax) std::abort();
    unescape_newlines(line.path);
    without_deleted_mark(line.path);
  }
  parse_stat(text);
  return 0;
}
