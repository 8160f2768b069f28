// Hostile .dwell files. The first byte chooses how deep the rest goes in at once: a checksum keeps
// random bytes from ever reaching the code behind it.
//   0  a whole file
//   1  the compressed part, behind a header that is right
//   2  the protobuf message
// What decodes must keep every promise of profile.h: every exporter runs on it and it encodes
// again.
#include <xxhash.h>
#include <zstd.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "export/export.h"
#include "profile/document.h"
#include "profile/dwell_file.h"

namespace dwell {
namespace {

constexpr uint64_t kClaimedBytesMax = 1 << 20;  // of the message, in the header of mode 1

void append_le(std::string& out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
}

// docs/dwell-file.md, "The header". The size of the message is what zstd believes it is.
std::string with_header(std::string_view payload) {
  const uint64_t claimed = ZSTD_getFrameContentSize(payload.data(), payload.size());
  std::string header(
      "\x89"
      "DWELL\r\n",
      8);
  append_le(header, kDwellFileFormat, 4);
  append_le(header, 0, 4);
  append_le(header, claimed < kClaimedBytesMax ? claimed : kClaimedBytesMax, 8);
  append_le(header, payload.size(), 8);
  const std::string checked = header + std::string(payload);
  append_le(header, XXH3_64bits(checked.data(), checked.size()), 8);
  return header.append(payload);
}

void use(const Profile& profile) {
  if (encode_document(profile).value() !=
      encode_document(decode_document(encode_document(profile).value()).value()).value())
    std::abort();
  // Deep stacks times many rows make long outputs; that is slow, not wrong.
  if (profile.rows.size() > 100 || profile.stacks.size() > 100) return;
  if (profile.timeline.size() > 1000) return;
  json(profile);
  table(profile);
  folded(profile, {.wall = true});
  if (!pprof(profile)) std::abort();
}

}  // namespace
}  // namespace dwell

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dwell;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  const Result<Profile> profile = data[0] == 2   ? decode_document(bytes)
                                  : data[0] == 1 ? decode(with_header(bytes))
                                                 : decode(bytes);
  if (profile) use(*profile);
  return 0;
}
