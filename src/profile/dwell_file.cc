#include "profile/dwell_file.h"

#include <fmt/format.h>
#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <new>

#include "base/fd.h"
#include "profile/document.h"

namespace dwell {
namespace {

// Like PNG's: a byte over 127 and a CR LF show a transfer that was not binary-safe.
constexpr std::string_view kMagic(
    "\x89"
    "DWELL\r\n",
    8);
constexpr size_t kChecksumOffset = 32;
constexpr size_t kHeaderBytes = 40;
constexpr size_t kFileBytesMax = kDocumentBytesMax + (size_t{1} << 20);
constexpr int kCompressionLevel = 3;

// Header: magic[8], u32 format, u32 zero, u64 bytes of the message, u64 bytes of the compressed
// message, u64 checksum; little endian.
struct Header {
  uint32_t format = kDwellFileFormat;
  uint64_t message_bytes = 0;
  uint64_t payload_bytes = 0;
  uint64_t checksum = 0;
};

void put_le(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

uint64_t get_le(std::string_view in, size_t offset, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i)
    value |= uint64_t{static_cast<unsigned char>(in[offset + static_cast<size_t>(i)])} << (8 * i);
  return value;
}

// Over everything but the checksum itself.
uint64_t checksum_of(std::string_view file_start, std::string_view payload) {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  const std::unique_ptr<XXH3_state_t, Free> state(XXH3_createState());
  XXH3_64bits_reset(state.get());
  XXH3_64bits_update(state.get(), file_start.data(), kChecksumOffset);
  XXH3_64bits_update(state.get(), payload.data(), payload.size());
  return XXH3_64bits_digest(state.get());
}

Result<Header> read_header(std::string_view bytes) {
  const size_t seen = std::min(bytes.size(), kMagic.size());
  if (bytes.empty()) return runtime_error("the file is empty: the recording did not finish");
  if (bytes.substr(0, seen) != kMagic.substr(0, seen))
    return runtime_error("not a dwell file: make one with `dwell record -o FILE`");
  if (bytes.size() < 12) return runtime_error("truncated: it ends inside its header");
  Header header;
  header.format = static_cast<uint32_t>(get_le(bytes, 8, 4));
  if (header.format > kDwellFileFormat)
    return runtime_error(
        fmt::format("written by a newer dwell (format {}), this one reads up to {}: upgrade dwell",
                    header.format, kDwellFileFormat));
  if (header.format == 0) return runtime_error("damaged: format 0 does not exist");
  if (bytes.size() < kHeaderBytes) return runtime_error("truncated: it ends inside its header");
  header.message_bytes = get_le(bytes, 16, 8);
  header.payload_bytes = get_le(bytes, 24, 8);
  header.checksum = get_le(bytes, kChecksumOffset, 8);
  return header;
}

Status check_payload(const Header& header, std::string_view bytes) {
  const std::string_view payload = bytes.substr(kHeaderBytes);
  if (header.payload_bytes > kFileBytesMax)
    return runtime_error("damaged: its header names an impossible size");
  if (payload.size() < header.payload_bytes)
    return runtime_error(
        fmt::format("truncated: {} of {} bytes are there; copy it again or repeat the recording",
                    bytes.size(), kHeaderBytes + header.payload_bytes));
  if (payload.size() > header.payload_bytes || checksum_of(bytes, payload) != header.checksum)
    return runtime_error(
        "damaged: its checksum does not match its content; copy it again or repeat the recording");
  if (header.message_bytes > kDocumentBytesMax)
    return runtime_error(fmt::format("too large: {} bytes uncompressed, the limit is {}",
                                     header.message_bytes, kDocumentBytesMax));
  return {};
}

// Grows with what really comes out, so that a header alone cannot make us allocate `limit`.
Result<std::string> decompress(std::string_view payload, size_t limit) {
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  const std::unique_ptr<ZSTD_DStream, Free> stream(ZSTD_createDStream());
  ZSTD_inBuffer in{payload.data(), payload.size(), 0};
  std::string out;
  size_t filled = 0;
  size_t pending = 1;  // 0 once the frame is complete
  while (pending != 0) {
    if (filled == out.size()) {
      if (filled > limit) return runtime_error("damaged: longer than its header says");
      out.resize(std::min(std::max(out.size() * 2, size_t{1} << 16), limit + 1));
    }
    ZSTD_outBuffer buffer{out.data(), out.size(), filled};
    const size_t before_in = in.pos;
    pending = ZSTD_decompressStream(stream.get(), &buffer, &in);
    if (ZSTD_isError(pending))
      return runtime_error(fmt::format("damaged: {}", ZSTD_getErrorName(pending)));
    if (buffer.pos == filled && in.pos == before_in && filled < out.size() && pending != 0)
      return runtime_error("damaged: the compressed part ends early");
    filled = buffer.pos;
  }
  if (in.pos != in.size) return runtime_error("damaged: bytes after the compressed part");
  out.resize(filled);
  return out;
}

Result<Profile> decode_checked(const Header& header, std::string_view bytes) {
  DWELL_ASSIGN(const std::string message,
               decompress(bytes.substr(kHeaderBytes), header.message_bytes));
  if (message.size() != header.message_bytes)
    return runtime_error("damaged: shorter than its header says");
  return decode_document(message);
}

}  // namespace

Result<std::string> encode(const Profile& profile) {
  DWELL_ASSIGN(const std::string message, encode_document(profile));
  std::string payload(ZSTD_compressBound(message.size()), '\0');
  const size_t payload_bytes = ZSTD_compress(payload.data(), payload.size(), message.data(),
                                             message.size(), kCompressionLevel);
  if (ZSTD_isError(payload_bytes))
    return runtime_error(
        fmt::format("cannot compress the profile: {}", ZSTD_getErrorName(payload_bytes)));
  payload.resize(payload_bytes);
  std::string out;
  out.reserve(kHeaderBytes + payload_bytes);
  out += kMagic;
  put_le(out, kDwellFileFormat, 4);
  put_le(out, 0, 4);
  put_le(out, message.size(), 8);
  put_le(out, payload_bytes, 8);
  put_le(out, checksum_of(out, payload), 8);
  out += payload;
  return out;
}

Result<Profile> decode(std::string_view bytes) {
  DWELL_ASSIGN(const Header header, read_header(bytes));
  DWELL_TRY(check_payload(header, bytes));
  try {
    return decode_checked(header, bytes);
  } catch (const std::bad_alloc&) {  // within our bounds, but more than this machine has
    return runtime_error(
        fmt::format("too large for the memory of this machine: {} bytes "
                    "uncompressed; read it on a larger one",
                    header.message_bytes));
  }
}

Status write_dwell_file(const std::string& path, const Profile& profile) {
  DWELL_ASSIGN(const std::string bytes, encode(profile));
  return write_file_atomically(path, bytes);
}

Result<Profile> read_dwell_file(const std::string& path) {
  DWELL_ASSIGN(const std::string bytes, read_file(path, kFileBytesMax));
  Result<Profile> profile = decode(bytes);
  if (!profile) profile.error().message = "cannot read " + path + ": " + profile.error().message;
  return profile;
}

}  // namespace dwell
