// The input of the native examples: bytes as hexadecimal digits, two a byte, with nothing between.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

inline dwell::Result<std::vector<std::byte>> bytes_of_hex(std::string_view digits) {
  std::vector<std::byte> bytes;
  for (; !digits.empty(); digits.remove_prefix(2)) {
    uint8_t byte = 0;
    if (digits.size() < 2 ||
        std::from_chars(digits.data(), digits.data() + 2, byte, 16).ptr != digits.data() + 2)
      return dwell::usage_error("not hexadecimal, two digits a byte: " +
                                std::string(digits.substr(0, 16)));
    bytes.push_back(std::byte{byte});
  }
  return bytes;
}
