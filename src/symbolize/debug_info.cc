#include "symbolize/debug_info.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <optional>

#include "symbolize/debug_file.h"

namespace dwell::symbolize {
namespace {

constexpr uint64_t kAlternateLinkMax = 4096;
constexpr const char* kInstall =
    "install the package's debug symbols, or build with -g and without stripping";

struct Candidate {
  OpenedFile file;
  ElfFile elf;
};

// An ELF file at `path`, its sections read.
Result<Candidate> open_elf(int root, const std::string& path) {
  DWELL_ASSIGN(OpenedFile file, open_in_root(root, path));
  DWELL_ASSIGN(const FileBytes bytes, FileBytes::of_file(file.fd.get(), path));
  DWELL_ASSIGN(ElfFile elf, ElfFile::read(bytes));
  DWELL_TRY(elf.read_sections());
  return Candidate{std::move(file), std::move(elf)};
}

// "" if it is the recorded file, else why not.
std::string difference(const Candidate& candidate, const RecordedModule& module) {
  if (!module.build_id.empty())
    return candidate.elf.build_id() == module.build_id ? "" : "another build of it is there now";
  const auto changed = static_cast<uint64_t>(candidate.file.identity.modified_ns);
  return changed > module.recorded_unix_ns ? "it changed after the recording" : "";
}

bool has_debug_info(const ElfFile& elf) {
  for (const char* name : {".debug_info", ".zdebug_info"})
    if (const Section* section = elf.section(name))
      if (section->type != SHT_NOBITS && section->bytes > 0) return true;
  return false;
}

// Section .gnu_debugaltlink: a path, a zero byte, a build id.
struct AlternateLink {
  std::string path;
  std::string build_id;
};
std::optional<AlternateLink> alternate_link(const ElfFile& elf, const std::string& path) {
  const Section* section = elf.section(".gnu_debugaltlink");
  if (section == nullptr) return std::nullopt;
  const auto bytes = elf.section_bytes(*section, kAlternateLinkMax);
  const size_t end = bytes ? bytes->find('\0') : std::string::npos;
  if (end == std::string::npos) return AlternateLink{};
  AlternateLink link{bytes->substr(0, end), ""};
  for (const char c : bytes->substr(end + 1))
    link.build_id += fmt::format("{:02x}", static_cast<unsigned char>(c));
  if (!link.path.starts_with('/')) link.path = path.substr(0, path.rfind('/') + 1) + link.path;
  return link;
}

void find_alternate(int root, const ElfFile& elf, const std::string& debug_dir, DebugInfo& info) {
  const auto link = alternate_link(elf, info.path);
  if (!link) return;
  info.alternate_missing = "its alternate debug file " + link->path + " is not there";
  if (link->build_id.size() <= 2) return;
  for (const std::string& path : {link->path, build_id_path(debug_dir, link->build_id)}) {
    auto candidate = open_elf(root, path);
    if (!candidate) continue;
    if (candidate->elf.build_id() != link->build_id) {
      info.alternate_missing = "its alternate debug file " + path + " is of another build";
      continue;
    }
    info.alternate = std::move(candidate->file.fd);
    info.alternate_missing.clear();
    return;
  }
}

DebugInfo with_alternate(int root, OpenedFile file, const ElfFile& elf, const std::string& path,
                         const std::string& debug_dir) {
  DebugInfo info;
  info.path = path;
  find_alternate(root, elf, debug_dir, info);
  info.file = std::move(file.fd);
  return info;
}

}  // namespace

Result<DebugInfo> find_debug_info(const RecordedModule& module, const std::string& debug_dir) {
  const Fd root(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  auto own = open_elf(root.get(), module.path);
  std::string failure = own ? difference(*own, module) : own.error().message;
  if (failure.empty() && has_debug_info(own->elf))
    return with_alternate(root.get(), std::move(own->file), own->elf, module.path, debug_dir);
  // By build id even where the module itself is gone or was replaced.
  if (module.build_id.size() > 2) {
    const std::string path = build_id_path(debug_dir, module.build_id);
    auto by_id = open_elf(root.get(), path);
    if (by_id && by_id->elf.build_id() == module.build_id && has_debug_info(by_id->elf))
      return with_alternate(root.get(), std::move(by_id->file), by_id->elf, path, debug_dir);
  }
  if (!failure.empty()) return runtime_error(failure);
  const DebugSearch search = find_debug_file(own->elf, module.path, {-1, root.get(), debug_dir});
  if (search.found) {
    auto found = open_elf(root.get(), search.found->path);
    if (found && has_debug_info(found->elf))
      return with_alternate(root.get(), std::move(found->file), found->elf, search.found->path,
                            debug_dir);
  }
  return runtime_error(fmt::format("it has no debug information{}; {}",
                                   search.refused.empty() ? "" : " and " + search.refused,
                                   kInstall));
}

}  // namespace dwell::symbolize
