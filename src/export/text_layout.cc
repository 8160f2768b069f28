#include "export/text_layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace dwell {
namespace {

constexpr size_t kUtf8BytesMax = 4;

bool starts_code_point(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

size_t columns_of(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(text, starts_code_point));
}

// Bytes of the first `columns` code points.
size_t bytes_of(std::string_view text, size_t columns) {
  size_t seen = 0;
  for (size_t i = 0; i < text.size(); ++i)
    if (starts_code_point(text[i]) && seen++ == columns) return i;
  return text.size();
}

}  // namespace

std::string clip(std::string_view untrusted, size_t columns) {
  // Cut before looking at it: names of a megabyte exist.
  std::string text = printable(untrusted.substr(0, (columns + 1) * kUtf8BytesMax));
  if (columns_of(text) <= columns) return text;
  text.resize(bytes_of(text, columns < 2 ? columns : columns - 2));
  if (columns >= 2) text += "..";
  return text;
}

std::string pad(std::string_view untrusted, size_t columns) {
  std::string text = clip(untrusted, columns);
  text.append(columns - columns_of(text), ' ');
  return text;
}

std::string wrap(std::string_view lead, std::string_view untrusted, size_t indent, size_t width) {
  const std::string_view text = untrusted.substr(0, kWrapBytesMax);
  std::vector<std::string> words;
  for (size_t i = 0; i < text.size();) {
    const size_t end = std::min(text.find(' ', i), text.size());
    if (end > i) words.emplace_back(text.substr(i, end - i));
    i = end + 1;
  }
  return wrap_words(lead, words, indent, width);
}

std::string wrap_words(std::string_view lead, const std::vector<std::string>& words, size_t indent,
                       size_t width) {
  std::string out(lead);
  size_t column = columns_of(lead);
  bool line_is_empty = true;
  for (const std::string& untrusted : words) {
    const std::string word = clip(untrusted, width - indent);
    if (!line_is_empty && column + 1 + columns_of(word) > width) {
      out += '\n';
      out.append(indent, ' ');
      column = indent;
      line_is_empty = true;
    }
    if (!line_is_empty) out += ' ';
    column += columns_of(word) + (line_is_empty ? 0 : 1);
    out += word;
    line_is_empty = false;
  }
  out += '\n';
  return out;
}

std::string percent(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.1f} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string grouped(uint64_t number) { return fmt::format("{}", fmt::group_digits(number)); }

std::string plural(uint64_t number, std::string_view noun) {
  const char* ending = number == 1 ? "" : noun.ends_with('s') ? "es" : "s";
  return fmt::format("{} {}{}", grouped(number), noun, ending);
}

}  // namespace dwell
