#include "symbolize/mini_debug.h"

#include <fmt/format.h>
#include <lzma.h>

#include <algorithm>

namespace dwell::symbolize {
namespace {

constexpr size_t kChunkBytes = 256 << 10;

struct Decoder {
  lzma_stream stream = LZMA_STREAM_INIT;
  ~Decoder() { lzma_end(&stream); }
};

}  // namespace

Result<std::string> decompress_mini_debug(std::string_view compressed) {
  if (compressed.size() > kMiniDebugInputMax)
    return runtime_error(fmt::format(".gnu_debugdata is larger than {} bytes", kMiniDebugInputMax));
  Decoder decoder;
  if (lzma_stream_decoder(&decoder.stream, kMiniDebugMemoryMax, 0) != LZMA_OK)
    return runtime_error(".gnu_debugdata: the decoder cannot start");
  decoder.stream.next_in = reinterpret_cast<const uint8_t*>(compressed.data());
  decoder.stream.avail_in = compressed.size();
  std::string out;
  for (;;) {
    const size_t old_size = out.size();
    if (old_size >= kMiniDebugMax)
      return runtime_error(fmt::format(".gnu_debugdata holds more than {} bytes", kMiniDebugMax));
    out.resize(std::min(old_size + kChunkBytes, kMiniDebugMax));
    decoder.stream.next_out = reinterpret_cast<uint8_t*>(out.data() + old_size);
    decoder.stream.avail_out = out.size() - old_size;
    const lzma_ret result = lzma_code(&decoder.stream, LZMA_FINISH);
    out.resize(out.size() - decoder.stream.avail_out);
    if (result == LZMA_STREAM_END) return out;
    if (result != LZMA_OK)
      return runtime_error(fmt::format(".gnu_debugdata is damaged or too complex (lzma error {})",
                                       static_cast<int>(result)));
  }
}

}  // namespace dwell::symbolize
