// Parses /proc/PID/maps. The text is the kernel's, the paths in it are the target's: any bytes.
// Called by the process maps, each time a process is read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dwell::symbolize {

// One executable line.
struct MapsLine {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t page_offset = 0;
  uint32_t device_major = 0;
  uint32_t device_minor = 0;
  uint64_t inode = 0;
  std::string path;  // as printed: with " (deleted)", "\012" for a newline; "" if anonymous
  // Anonymous memory between two mappings of one file: its text, moved onto huge pages. `path` and
  // `page_offset` are then the neighbours', `inode` as well.
  bool moved_text = false;
};

constexpr size_t kMapsLinesMax = 1 << 20;
constexpr size_t kMapsPathMax = 4096;

// The executable lines in order of address. Lines that make no sense are left out.
std::vector<MapsLine> parse_maps(std::string_view text);

// "a b" of "a b (deleted)"; `path` itself if it does not end so.
std::string_view without_deleted_mark(std::string_view path);

// Undoes the kernel's "\012" for a newline.
std::string unescape_newlines(std::string_view path);

}  // namespace dwell::symbolize
