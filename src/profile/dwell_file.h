// The .dwell file: a Profile as bytes, and back. Layout in docs/dwell-file.md: a 40-byte header
// (magic, format, sizes, XXH3 checksum), then a zstd-compressed protobuf message
// (dwell_profile.proto).
//
// decode() trusts nothing: a file may be cut short, damaged or made by an enemy. It checks every
// index, enum and size, bounds the memory it uses, and what it returns keeps every promise of
// profile.h. Called by `dwell record` (write) and `dwell report` (read).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "profile/profile.h"

namespace dwell {

constexpr uint32_t kDwellFileFormat = 1;
// Of the message, uncompressed. Protobuf itself stops at 2 GiB; a million rows with 200,000 stacks
// take 60 MiB.
constexpr size_t kDocumentBytesMax = size_t{1} << 30;

// Fails only for a profile over kDocumentBytesMax or with times that do not add up in 63 bits.
Result<std::string> encode(const Profile& profile);
// Errors: not a dwell file, newer format, truncated, damaged; each in words.
Result<Profile> decode(std::string_view bytes);

Status write_dwell_file(const std::string& path, const Profile& profile);
Result<Profile> read_dwell_file(const std::string& path);

}  // namespace dwell
