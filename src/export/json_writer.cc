#include "export/json_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace dwell {
namespace {

bool is_plain(unsigned char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; }

}  // namespace

void JsonWriter::value(std::string_view text) {
  comma();
  pending_comma_ = true;
  if (std::ranges::all_of(text, is_plain)) {
    out_ += '"';
    out_ += text;
    out_ += '"';
    return;
  }
  // Rare: the library knows every rule of UTF-8 and of JSON's escapes.
  out_ += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void JsonWriter::null() {
  comma();
  out_ += "null";
  pending_comma_ = true;
}

}  // namespace dwell
