// Text that comes from other processes (names, paths) made safe to print, and durations for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace dwell {
inline namespace v0 {

// Control bytes become \xNN, characters that turn the writing direction \uNNNN, invalid UTF-8
// U+FFFD; other text stays. For terminals and text formats.
std::string printable(std::string_view untrusted);

// "1.234 s", "12.3 ms", "4.0 us", "17 ns": four significant digits at most.
std::string format_duration(uint64_t ns);
// "12.3 MiB"
std::string format_bytes(uint64_t bytes);

// Parses "10ms", "1.5s", "200us", "3m", "7ns"; a bare number is refused, except 0. Error::kUsage.
Result<uint64_t> parse_duration(std::string_view text);

// A whole decimal number that fits, nothing else.
Result<uint32_t> parse_u32(std::string_view text);

}  // namespace v0
}  // namespace dwell
