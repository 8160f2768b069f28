#include "symbolize/debug_file.h"

#include <fmt/format.h>
#include <lzma.h>

#include <cstring>
#include <vector>

#include "symbolize/object_files.h"

namespace dwell::symbolize {
namespace {

constexpr uint64_t kLinkMax = 4096;

// Directories were moved below /usr after many debug packages had been laid out.
std::vector<std::string> link_paths(const std::string& directory, const std::string& name,
                                    const std::string& debug_dir) {
  std::vector<std::string> paths{directory + "/" + name, directory + "/.debug/" + name,
                                 debug_dir + directory + "/" + name};
  constexpr std::string_view kUsr = "/usr";
  if (directory.starts_with("/usr/"))
    paths.push_back(debug_dir + directory.substr(kUsr.size()) + "/" + name);
  else
    paths.push_back(debug_dir + "/usr" + directory + "/" + name);
  return paths;
}

// The CRC of .gnu_debuglink is the one of zlib and .xz.
std::optional<uint32_t> checksum_of(const FileBytes& bytes) {
  if (bytes.size() > kChecksumMax) return std::nullopt;
  std::vector<uint8_t> chunk(size_t{1} << 20);
  uint32_t crc = 0;
  for (uint64_t at = 0; at < bytes.size(); at += chunk.size()) {
    chunk.resize(std::min<uint64_t>(chunk.size(), bytes.size() - at));
    if (!bytes.read(at, chunk.data(), chunk.size())) return std::nullopt;
    crc = lzma_crc32(chunk.data(), chunk.size(), crc);
  }
  return crc;
}

// Build id of a debug file: its program headers may be junk, its note sections are not.
std::string debug_build_id(const FileBytes& bytes) {
  auto elf = ElfFile::read(bytes);
  if (!elf) return {};
  if (elf->build_id().empty() && !elf->read_sections()) return {};
  return elf->build_id();
}

// "" if the candidate is the debug file, else why not.
using Check = std::string (*)(const FileBytes& candidate, const ElfFile& elf,
                              const DebugLink& link);

std::string check_build_id(const FileBytes& candidate, const ElfFile& elf, const DebugLink&) {
  return debug_build_id(candidate) == elf.build_id() ? "" : "has another build id";
}

std::string check_link(const FileBytes& candidate, const ElfFile& elf, const DebugLink& link) {
  if (candidate.size() == elf.bytes().size() && checksum_of(candidate) == checksum_of(elf.bytes()))
    return "is the file itself";
  if (!elf.build_id().empty() && debug_build_id(candidate) == elf.build_id()) return "";
  return checksum_of(candidate) == link.checksum ? "" : "has another checksum";
}

bool try_paths(const std::vector<std::string>& paths, const ElfFile& elf, const DebugLink& link,
               const DebugPlaces& places, Check check, DebugSearch& search) {
  for (const std::string& path : paths) {
    for (const int root : {places.target_root, places.own_root}) {
      if (root < 0) continue;
      auto file = open_in_root(root, path);
      if (!file) continue;
      const auto bytes = FileBytes::of_file(file->fd.get(), path);
      if (!bytes) continue;
      const std::string why = check(*bytes, elf, link);
      if (!why.empty()) {
        search.refused = path + " " + why;
        continue;
      }
      search.found = DebugFile{std::move(file->fd), path};
      return true;
    }
  }
  return false;
}

}  // namespace

std::string build_id_path(const std::string& debug_dir, const std::string& build_id) {
  return fmt::format("{}/.build-id/{}/{}.debug", debug_dir, build_id.substr(0, 2),
                     build_id.substr(2));
}

std::optional<DebugLink> parse_debug_link(std::string_view section) {
  const size_t end = section.find('\0');
  if (end == 0 || end == std::string_view::npos) return std::nullopt;
  const size_t checksum_at = (end + 4) / 4 * 4;
  DebugLink link{std::string(section.substr(0, end)), 0};
  if (checksum_at + sizeof(link.checksum) > section.size()) return std::nullopt;
  if (link.name.find('/') != std::string::npos || link.name == "..") return std::nullopt;
  std::memcpy(&link.checksum, section.data() + checksum_at, sizeof(link.checksum));
  return link;
}

DebugSearch find_debug_file(const ElfFile& elf, const std::string& path,
                            const DebugPlaces& places) {
  DebugSearch search;
  if (elf.build_id().size() > 2 && try_paths({build_id_path(places.debug_dir, elf.build_id())}, elf,
                                             {}, places, check_build_id, search))
    return search;
  const Section* section = elf.section(".gnu_debuglink");
  const size_t slash = path.rfind('/');
  if (section == nullptr || slash == std::string::npos) return search;
  const auto bytes = elf.section_bytes(*section, kLinkMax);
  const auto link = bytes ? parse_debug_link(*bytes) : std::nullopt;
  if (!link) {
    if (search.refused.empty()) search.refused = ".gnu_debuglink is malformed";
    return search;
  }
  try_paths(link_paths(path.substr(0, slash), link->name, places.debug_dir), elf, *link, places,
            check_link, search);
  return search;
}

}  // namespace dwell::symbolize
