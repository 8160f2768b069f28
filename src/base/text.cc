#include "base/text.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace dwell {
inline namespace v0 {
namespace {

// Length of the valid UTF-8 sequence at the front of `s`, 0 if there is none. Overlong forms,
// surrogates and values above U+10FFFF are invalid.
size_t utf8_length(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const auto tail = [&](size_t i) { return i < s.size() && (byte(i) & 0xc0) == 0x80; };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return tail(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    if (!tail(1) || !tail(2)) return 0;
    if (lead == 0xe0 && byte(1) < 0xa0) return 0;
    if (lead == 0xed && byte(1) > 0x9f) return 0;
    return 3;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    if (!tail(1) || !tail(2) || !tail(3)) return 0;
    if (lead == 0xf0 && byte(1) < 0x90) return 0;
    if (lead == 0xf4 && byte(1) > 0x8f) return 0;
    return 4;
  }
  return 0;
}

// Characters that turn the direction of the text around them: a name could rearrange the line it
// stands in.
bool is_direction_control(std::string_view s) {
  if (s.size() != 3 || s[0] != '\xe2') return false;
  const unsigned char last = static_cast<unsigned char>(s[2]);
  if (s[1] == '\x80') return last == 0x8e || last == 0x8f || (last >= 0xaa && last <= 0xae);
  return s[1] == '\x81' && last >= 0xa6 && last <= 0xa9;
}

bool is_c1_control(std::string_view sequence) {
  return sequence.size() == 2 && sequence[0] == '\xc2' &&
         static_cast<unsigned char>(sequence[1]) < 0xa0;
}

}  // namespace

std::string printable(std::string_view untrusted) {
  std::string out;
  out.reserve(untrusted.size());
  for (size_t i = 0; i < untrusted.size();) {
    const size_t n = utf8_length(untrusted.substr(i));
    const unsigned char lead = static_cast<unsigned char>(untrusted[i]);
    if (n == 0) {
      out += "\xef\xbf\xbd";
      ++i;
      continue;
    }
    if (lead < 0x20 || lead == 0x7f) {
      out += fmt::format("\\x{:02x}", lead);
    } else if (is_c1_control(untrusted.substr(i, n))) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(untrusted[i + 1]));
    } else if (is_direction_control(untrusted.substr(i, n))) {
      out += fmt::format("\\u{:04x}",
                         (untrusted[i + 1] & 0x3f) << 6 | (untrusted[i + 2] & 0x3f) | 0x2000);
    } else {
      out += untrusted.substr(i, n);
    }
    i += n;
  }
  return out;
}

std::string format_duration(uint64_t ns) {
  const auto scaled = [](double value, const char* unit) {
    const int decimals = value < 9.9995 ? 3 : value < 99.995 ? 2 : value < 999.95 ? 1 : 0;
    return fmt::format("{:.{}f} {}", value, decimals, unit);
  };
  const double value = static_cast<double>(ns);
  if (ns < 1'000) return fmt::format("{} ns", ns);
  if (ns < 1'000'000) return scaled(value / 1e3, "us");
  if (ns < 1'000'000'000) return scaled(value / 1e6, "ms");
  return scaled(value / 1e9, "s");
}

std::string format_bytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

Result<uint64_t> parse_duration(std::string_view text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || !std::isfinite(value) || value < 0)
    return usage_error(fmt::format("'{}' is not a duration; write for example 10ms, 1.5s or 200us",
                                   printable(text)));
  const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
  double factor = 0;
  if (unit == "ns") factor = 1;
  if (unit == "us") factor = 1e3;
  if (unit == "ms") factor = 1e6;
  if (unit == "s") factor = 1e9;
  if (unit == "m" || unit == "min") factor = 60e9;
  if (unit == "h") factor = 3600e9;
  if (unit.empty() && value == 0) return 0;
  if (factor == 0)
    return usage_error(fmt::format(
        "'{}' has no unit; write ns, us, ms, s, m or h, for example 10ms", printable(text)));
  if (value * factor > 9.2e18)
    return usage_error(fmt::format("'{}' is too long; the limit is 292 years", printable(text)));
  return static_cast<uint64_t>(std::llround(value * factor));
}

Result<uint32_t> parse_u32(std::string_view text) {
  uint32_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size())
    return usage_error(
        fmt::format("'{}' is not a whole number from 0 to 4294967295", printable(text)));
  return value;
}

}  // namespace v0
}  // namespace dwell
