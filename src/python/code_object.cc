#include "python/code_object.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace dwell::python {
namespace {

constexpr uint64_t kAddressMax = uint64_t{1} << 56;

template <typename Value>
std::optional<Value> read_value(const ReadMemory& read, uint64_t address) {
  Value value;
  if (address == 0 || address >= kAddressMax || !read(address, &value, sizeof(value)))
    return std::nullopt;
  return value;
}

bool is_code_type(const ReadMemory& read, const ObjectOffsets& offsets, uint64_t type) {
  const auto name = read_value<uint64_t>(read, type + offsets.type_name);
  const auto text = name ? read_value<std::array<char, 5>>(read, *name) : std::nullopt;
  return text && std::memcmp(text->data(), "code", 5) == 0;
}

// How a string keeps its characters: PyASCIIObject.state.
struct StringState {
  unsigned width;  // bytes of a character
  bool compact;    // the characters follow the header
  bool ascii;
};

// `interned` takes two bits, or since some 3.14 sixteen: then what would be the width is 0.
StringState state_of(uint32_t bits) {
  bits >>= (bits >> 2 & 7) != 0 ? 2 : 16;
  return {bits & 7, (bits >> 3 & 1) != 0, (bits >> 4 & 1) != 0};
}

// A lone surrogate of these stands for a byte that is no UTF-8, in names of files.
bool is_escaped_byte(uint32_t character) { return character >= 0xdc80 && character <= 0xdcff; }

void append_utf8(std::string& text, uint32_t character) {
  if (is_escaped_byte(character)) {
    text += static_cast<char>(character & 0xff);
    return;
  }
  if (character > 0x10ffff || (character >= 0xd800 && character <= 0xdfff)) character = 0xfffd;
  const auto tail = [&](unsigned shift) {
    text += static_cast<char>(0x80 | (character >> shift & 0x3f));
  };
  if (character < 0x80) {
    text += static_cast<char>(character);
  } else if (character < 0x800) {
    text += static_cast<char>(0xc0 | character >> 6);
    tail(0);
  } else if (character < 0x10000) {
    text += static_cast<char>(0xe0 | character >> 12);
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xf0 | character >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

std::string to_utf8(const std::vector<uint8_t>& characters, unsigned width) {
  std::string text;
  for (size_t at = 0; at + width <= characters.size(); at += width) {
    uint32_t character = 0;
    std::memcpy(&character, &characters[at], width);
    append_utf8(text, character);
  }
  return text;
}

std::optional<std::string> read_string(const ReadMemory& read, const ObjectOffsets& offsets,
                                       uint64_t address, size_t characters_max) {
  const auto length = read_value<uint64_t>(read, address + offsets.string_length);
  const auto bits = read_value<uint32_t>(read, address + offsets.string_state);
  if (!length || !bits) return std::nullopt;
  const StringState state = state_of(*bits);
  if (!state.compact || (state.width != 1 && state.width != 2 && state.width != 4))
    return std::nullopt;
  const size_t count = std::min<uint64_t>(*length, characters_max);
  std::vector<uint8_t> characters(count * state.width);
  const uint64_t data = state.ascii ? offsets.string_ascii_data : offsets.string_other_data;
  if (!characters.empty() && !read(address + data, characters.data(), characters.size()))
    return std::nullopt;
  return to_utf8(characters, state.width);
}

std::string read_line_table(const ReadMemory& read, const ObjectOffsets& offsets,
                            uint64_t address) {
  const auto length = read_value<uint64_t>(read, address + offsets.bytes_length);
  if (!length || *length > kLineTableMax) return {};
  std::string table(*length, '\0');
  if (!table.empty() && !read(address + offsets.bytes_data, table.data(), table.size())) return {};
  return table;
}

}  // namespace

std::optional<CodeIdentity> read_identity(const ReadMemory& read, const ObjectOffsets& offsets,
                                          uint64_t address) {
  std::array<uint8_t, kCodeBytesMax> header = {};
  const uint32_t fields[] = {offsets.type, offsets.code_name, offsets.code_filename,
                             offsets.code_line_table, offsets.code_first_line};
  const size_t bytes = *std::ranges::max_element(fields) + sizeof(uint64_t);
  if (address == 0 || bytes > header.size() || !read(address, header.data(), bytes))
    return std::nullopt;
  CodeIdentity identity;
  std::memcpy(&identity.type, &header[offsets.type], sizeof(uint64_t));
  std::memcpy(&identity.name, &header[offsets.code_name], sizeof(uint64_t));
  std::memcpy(&identity.filename, &header[offsets.code_filename], sizeof(uint64_t));
  std::memcpy(&identity.line_table, &header[offsets.code_line_table], sizeof(uint64_t));
  std::memcpy(&identity.first_line, &header[offsets.code_first_line], sizeof(uint32_t));
  return identity;
}

std::optional<CodeObject> read_code(const ReadMemory& read, const ObjectOffsets& offsets,
                                    const CodeIdentity& identity) {
  if (!is_code_type(read, offsets, identity.type)) return std::nullopt;
  auto name = read_string(read, offsets, identity.name, kNameCharactersMax);
  auto filename = read_string(read, offsets, identity.filename, kFileCharactersMax);
  if (!name || !filename) return std::nullopt;
  return CodeObject{identity, std::move(*name), std::move(*filename),
                    read_line_table(read, offsets, identity.line_table)};
}

}  // namespace dwell::python
