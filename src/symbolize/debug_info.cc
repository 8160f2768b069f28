#include "symbolize/debug_info.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>

#include <optional>

#include "symbolize/debug_file.h"
#include "symbolize/debug_servers.h"

namespace dwell::symbolize {
namespace {

constexpr uint64_t kAlternateLinkMax = 4096;
constexpr const char* kInstall =
    "install the package's debug symbols, ask servers for them (--debuginfod), or build with -g "
    "and "
    "without stripping";

// Where debug files are looked for.
struct Places {
  int root;
  const std::string& debug_dir;
  DebugServers* servers;
};

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

void find_alternate(const Places& places, const ElfFile& elf, DebugInfo& info) {
  const auto link = alternate_link(elf, info.path);
  if (!link) return;
  info.alternate_missing = "its alternate debug file " + link->path + " is not there";
  if (link->build_id.size() <= 2) return;
  const auto take = [&](const std::string& path) {
    auto candidate = open_elf(places.root, path);
    if (!candidate) return false;
    if (candidate->elf.build_id() != link->build_id) {
      info.alternate_missing = "its alternate debug file " + path + " is of another build";
      return false;
    }
    info.alternate = std::move(candidate->file.fd);
    info.alternate_missing.clear();
    return true;
  };
  if (take(link->path) || take(build_id_path(places.debug_dir, link->build_id))) return;
  if (places.servers == nullptr) return;
  if (const auto path = places.servers->fetch(link->build_id, link->path)) take(*path);
}

DebugInfo with_alternate(const Places& places, Candidate found, const std::string& path) {
  DebugInfo info;
  info.path = path;
  find_alternate(places, found.elf, info);
  info.file = std::move(found.file.fd);
  return info;
}

// The debug information of that build, wherever the module itself is.
std::optional<DebugInfo> find_by_id(const Places& places, const std::string& path,
                                    const std::string& build_id) {
  auto found = open_elf(places.root, path);
  if (!found || found->elf.build_id() != build_id || !has_debug_info(found->elf))
    return std::nullopt;
  return with_alternate(places, std::move(*found), path);
}

Result<DebugInfo> fetch(const Places& places, const RecordedModule& module) {
  DWELL_ASSIGN(const std::string path, places.servers->fetch(module.build_id, module.path));
  auto found = find_by_id(places, path, module.build_id);
  if (found) return std::move(*found);
  return runtime_error("what the servers sent has no debug information");
}

// On this machine.
Result<DebugInfo> find_here(const Places& places, const RecordedModule& module) {
  auto own = open_elf(places.root, module.path);
  std::string failure = own ? difference(*own, module) : own.error().message;
  if (failure.empty() && has_debug_info(own->elf))
    return with_alternate(places, std::move(*own), module.path);
  // By build id even where the module itself is gone or was replaced.
  if (module.build_id.size() > 2) {
    auto by_id =
        find_by_id(places, build_id_path(places.debug_dir, module.build_id), module.build_id);
    if (by_id) return std::move(*by_id);
  }
  if (!failure.empty()) return runtime_error(failure);
  const DebugSearch search =
      find_debug_file(own->elf, module.path, {-1, places.root, places.debug_dir});
  if (search.found) {
    auto found = open_elf(places.root, search.found->path);
    if (found && has_debug_info(found->elf))
      return with_alternate(places, std::move(*found), search.found->path);
  }
  return runtime_error(fmt::format("it has no debug information{}; {}",
                                   search.refused.empty() ? "" : " and " + search.refused,
                                   kInstall));
}

}  // namespace

Result<DebugInfo> find_debug_info(const RecordedModule& module, const std::string& debug_dir,
                                  DebugServers* servers) {
  const Fd root(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const Places places{root.get(), debug_dir, servers};
  auto here = find_here(places, module);
  if (here || servers == nullptr) return here;
  auto fetched = fetch(places, module);
  if (fetched) return fetched;
  return runtime_error(here.error().message + "; " + fetched.error().message);
}

}  // namespace dwell::symbolize
