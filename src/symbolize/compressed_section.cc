#include "symbolize/compressed_section.h"

#include <elf.h>
#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>

namespace dwell::symbolize {
namespace {

constexpr size_t kFirstRoom = 64 << 10;
// Frames that are written in one go have a window as long as their content.
constexpr int kZstdWindowLogMax = 28;
constexpr uint32_t kZstdType = 2;  // ELFCOMPRESS_ZSTD, which older <elf.h> lacks
constexpr std::string_view kOldMagic = "ZLIB";
constexpr std::string_view kOldPrefix = ".z";

// One step of a decoder: how many bytes it made, and whether it has come to the end or to nonsense.
struct Step {
  enum class State { kMore, kEnd, kDamaged } state = State::kDamaged;
  size_t made = 0;
};

class ZlibDecoder {
 public:
  explicit ZlibDecoder(std::string_view in) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    ready_ = inflateInit(&stream_) == Z_OK;
  }
  ~ZlibDecoder() {
    if (ready_) inflateEnd(&stream_);
  }
  ZlibDecoder(const ZlibDecoder&) = delete;
  ZlibDecoder& operator=(const ZlibDecoder&) = delete;

  Step step(char* to, size_t room) {
    if (!ready_) return {};
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(room);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    const size_t made = room - stream_.avail_out;
    if (result == Z_STREAM_END) return {Step::State::kEnd, made};
    return {result == Z_OK ? Step::State::kMore : Step::State::kDamaged, made};
  }

 private:
  z_stream stream_ = {};
  bool ready_ = false;
};

class ZstdDecoder {
 public:
  explicit ZstdDecoder(std::string_view in) : in_{in.data(), in.size(), 0} {
    if (context_) ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kZstdWindowLogMax);
  }

  Step step(char* to, size_t room) {
    if (!context_) return {};
    ZSTD_outBuffer out{to, room, 0};
    const size_t before = in_.pos;
    const size_t left = ZSTD_decompressStream(context_.get(), &out, &in_);
    if (ZSTD_isError(left) != 0) return {};
    if (left == 0) return {Step::State::kEnd, out.pos};
    const bool moved = out.pos > 0 || in_.pos > before;
    return {moved ? Step::State::kMore : Step::State::kDamaged, out.pos};
  }

 private:
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context_{ZSTD_createDCtx(), ZSTD_freeDCtx};
  ZSTD_inBuffer in_;
};

// All that the decoder makes, which is as much as was claimed.
template <typename Decoder>
Result<std::string> decode(std::string_view compressed, uint64_t claimed) {
  Decoder decoder(compressed);
  std::string out;
  size_t filled = 0;
  for (;;) {
    // One byte more than claimed: room for a decoder to say that there is too much, or the end.
    out.resize(std::min<uint64_t>(claimed + 1, std::max(kFirstRoom, 2 * out.size())));
    while (filled < out.size()) {
      const Step step = decoder.step(out.data() + filled, out.size() - filled);
      filled += step.made;
      if (step.state == Step::State::kDamaged || filled > claimed)
        return runtime_error("a compressed section is damaged");
      if (step.state == Step::State::kMore) continue;
      if (filled < claimed) return runtime_error("a compressed section is shorter than it claims");
      out.resize(filled);
      return out;
    }
  }
}

Status check_claim(uint64_t claimed, uint64_t limit) {
  if (claimed <= limit) return {};
  return runtime_error(
      fmt::format("a compressed section claims {} bytes, limit {}", claimed, limit));
}

// Behind an Elf64_Chdr.
Result<std::string> decode_flagged(std::string_view bytes, uint64_t limit) {
  Elf64_Chdr header;
  if (bytes.size() < sizeof(header)) return runtime_error("a compressed section has no header");
  std::memcpy(&header, bytes.data(), sizeof(header));
  bytes.remove_prefix(sizeof(header));
  DWELL_TRY(check_claim(header.ch_size, limit));
  if (header.ch_type == ELFCOMPRESS_ZLIB) return decode<ZlibDecoder>(bytes, header.ch_size);
  if (header.ch_type == kZstdType) return decode<ZstdDecoder>(bytes, header.ch_size);
  return runtime_error(fmt::format("a section is compressed in an unknown way ({})",
                                   static_cast<uint32_t>(header.ch_type)));
}

// Behind "ZLIB" and the size, most significant byte first.
Result<std::string> decode_old(std::string_view bytes, uint64_t limit) {
  uint64_t claimed;
  char magic[kOldMagic.size()];
  if (bytes.size() < sizeof(magic) + sizeof(claimed))
    return runtime_error("a compressed section has no header");
  std::memcpy(magic, bytes.data(), sizeof(magic));
  std::memcpy(&claimed, bytes.data() + sizeof(magic), sizeof(claimed));
  if (std::string_view(magic, sizeof(magic)) != kOldMagic)
    return runtime_error("a compressed section has an unknown header");
  claimed = __builtin_bswap64(claimed);
  DWELL_TRY(check_claim(claimed, limit));
  return decode<ZlibDecoder>(bytes.substr(kOldMagic.size() + sizeof(claimed)), claimed);
}

}  // namespace

Result<std::string> read_debug_section(const ElfFile& elf, std::string_view name, uint64_t limit) {
  static_assert(std::endian::native == std::endian::little);
  const FileBytes& file = elf.bytes();
  if (const Section* section = elf.section(name); section != nullptr) {
    if ((section->flags & SHF_COMPRESSED) == 0) return elf.section_bytes(*section, limit);
    if (!elf.is_64()) return runtime_error("a compressed section of a 32-bit file");
    DWELL_ASSIGN(const std::string bytes, file.read_range(section->offset, section->bytes, limit));
    return decode_flagged(bytes, limit);
  }
  const Section* old = elf.section(std::string(kOldPrefix) + std::string(name.substr(1)));
  if (old == nullptr) return "";
  DWELL_ASSIGN(const std::string bytes, elf.section_bytes(*old, limit));
  return decode_old(bytes, limit);
}

}  // namespace dwell::symbolize
