// Words of the command line that all commands read alike. Called by the options of `record` and
// `events`; an error is a usage error that names the option.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/text.h"

namespace dwell::cli {

// For CLI11: an empty word stands for an unset variable, not for the default.
inline std::string refuse_empty(const std::string& text) {
  return text.empty() ? "the value is empty; leave the option out for the default" : "";
}

// A whole number from `minimum` to `maximum`.
inline Result<uint32_t> parse_number(const std::string& text, const char* option, uint32_t minimum,
                                     uint32_t maximum) {
  const auto value = parse_u32(text);
  if (!value || *value < minimum || *value > maximum)
    return usage_error(fmt::format("{}: '{}' is not a whole number from {} to {}", option,
                                   printable(text), minimum, maximum));
  return *value;
}

}  // namespace dwell::cli
