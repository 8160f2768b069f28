// Text set into columns of a terminal. Everything untrusted passes through clip() or wrap(), which
// make it printable and bound its length. Used by the table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dwell {

constexpr size_t kWidthMin = 60;  // below it the columns no longer fit; lines get longer instead

// Printable, at most `columns` code points; what was cut shows as "..".
std::string clip(std::string_view untrusted, size_t columns);
// clip(), then filled with blanks up to `columns`.
std::string pad(std::string_view untrusted, size_t columns);

// Printable, broken between words into lines of at most `width` columns (a longer word stands
// alone, clipped), each indented by `indent`; the first line begins with `lead` instead. At most
// kWrapBytesMax bytes of the text are shown.
constexpr size_t kWrapBytesMax = 4096;
std::string wrap(std::string_view lead, std::string_view untrusted, size_t indent, size_t width);
// The same with words that may hold blanks: a number stays beside its unit.
std::string wrap_words(std::string_view lead, const std::vector<std::string>& words, size_t indent,
                       size_t width);

// "12.3 %", of nothing: "-".
std::string percent(uint64_t part, uint64_t whole);
// "12,345"
std::string grouped(uint64_t number);
// "1 thread", "12 threads", "3 processes"
std::string plural(uint64_t number, std::string_view noun);

}  // namespace dwell
