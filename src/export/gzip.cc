#include "export/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <limits>

namespace dwell {
namespace {

constexpr int kGzipWindowBits = 15 + 16;  // zlib: 16 more asks for a gzip header
constexpr int kMemoryLevel = 8;
constexpr int kLevel = 4;  // half the time of the default level for a tenth more bytes
constexpr size_t kChunkBytes = size_t{1} << 30;  // zlib counts in 32 bits

}  // namespace

Result<std::string> compress_gzip(std::string_view bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindowBits, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK)
    return runtime_error("cannot compress with zlib: out of memory");
  std::string out;
  size_t filled = 0;
  size_t taken = 0;
  int status = Z_OK;
  while (status == Z_OK || status == Z_BUF_ERROR) {
    if (stream.avail_in == 0 && taken < bytes.size()) {
      const size_t chunk = std::min(kChunkBytes, bytes.size() - taken);
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data() + taken));
      stream.avail_in = static_cast<uInt>(chunk);
      taken += chunk;
    }
    if (filled == out.size()) out.resize(std::max(size_t{1} << 16, out.size() * 2));
    const size_t room = std::min(kChunkBytes, out.size() - filled);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
    stream.avail_out = static_cast<uInt>(room);
    status = deflate(&stream, taken == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
    filled += room - stream.avail_out;
  }
  deflateEnd(&stream);
  if (status != Z_STREAM_END)
    return runtime_error(fmt::format("cannot compress with zlib: error {}", status));
  out.resize(filled);
  return out;
}

std::string encode_base64(std::string_view bytes) {
  static constexpr char kAlphabet[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto byte = [&](size_t i) -> uint32_t {
    return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0;
  };
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    out += kAlphabet[group >> 18];
    out += kAlphabet[group >> 12 & 63];
    out += i + 1 < bytes.size() ? kAlphabet[group >> 6 & 63] : '=';
    out += i + 2 < bytes.size() ? kAlphabet[group & 63] : '=';
  }
  return out;
}

}  // namespace dwell
