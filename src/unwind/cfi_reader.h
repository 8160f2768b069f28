// A cursor over call-frame information: numbers of fixed and variable length, encoded pointers.
// The bytes belong to a hostile file: a read beyond the end gives 0 and marks the cursor as failed,
// for good, so that callers check once, after a group of reads.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace dwell::unwind {

// DW_EH_PE_*: how a pointer is written.
enum PointerEncoding : uint8_t {
  kPointerAbsolute = 0x00,
  kPointerPcRelative = 0x10,
  kPointerAligned = 0x50,
  kPointerIndirect = 0x80,
  kPointerOmitted = 0xff,
};

class CfiReader {
 public:
  // `address` is that of the first byte in the process' terms: what pc-relative pointers count
  // from.
  CfiReader(std::string_view bytes, uint64_t address) : bytes_(bytes), address_(address) {}

  bool failed() const { return failed_; }
  bool at_end() const { return at_ >= bytes_.size(); }
  size_t position() const { return at_; }
  size_t remaining() const { return bytes_.size() - at_; }
  uint64_t address() const { return address_ + at_; }

  template <typename Integer>
  Integer fixed() {
    Integer value = 0;
    if (remaining() < sizeof value) return fail();
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  uint8_t u8() { return fixed<uint8_t>(); }

  uint64_t uleb() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const uint8_t byte = u8();
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }

  int64_t sleb() {
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const uint8_t byte = u8();
      if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
      if ((byte & 0x80) != 0) continue;
      if ((byte & 0x40) != 0 && shift + 7 < 64) value |= ~uint64_t{0} << (shift + 7);
      return static_cast<int64_t>(value);
    }
  }

  std::string_view take(uint64_t bytes) {
    if (bytes > remaining()) {
      fail();
      return {};
    }
    const std::string_view taken = bytes_.substr(at_, bytes);
    at_ += bytes;
    return taken;
  }

  // Up to and without the terminating zero.
  std::string_view text() {
    const size_t end = bytes_.find('\0', at_);
    if (end == std::string_view::npos) {
      fail();
      return {};
    }
    const std::string_view taken = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return taken;
  }

  // Fails for the encodings that need more than the section: relative to other sections, indirect.
  uint64_t pointer(uint8_t encoding) {
    const uint64_t here = address();
    const uint64_t value = unbased(encoding);
    switch (encoding & 0xf0) {
      case kPointerAbsolute:
        return value;
      case kPointerPcRelative:
        return here + value;
      default:
        return fail();
    }
  }

  // The value alone, whatever it is relative to: lengths, and pointers that are only skipped.
  uint64_t unbased(uint8_t encoding) {
    if (encoding == kPointerAligned) {
      take((8 - address() % 8) % 8);
      return fixed<uint64_t>();
    }
    switch (encoding & 0x0f) {
      case 0x00:
      case 0x04:
      case 0x0c:
        return fixed<uint64_t>();
      case 0x01:
        return uleb();
      case 0x02:
        return fixed<uint16_t>();
      case 0x03:
        return fixed<uint32_t>();
      case 0x09:
        return static_cast<uint64_t>(sleb());
      case 0x0a:
        return static_cast<uint64_t>(int64_t{fixed<int16_t>()});
      case 0x0b:
        return static_cast<uint64_t>(int64_t{fixed<int32_t>()});
      default:
        return fail();
    }
  }

  uint8_t fail() {
    failed_ = true;
    at_ = bytes_.size();
    return 0;
  }

 private:
  std::string_view bytes_;
  uint64_t address_;
  size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace dwell::unwind
