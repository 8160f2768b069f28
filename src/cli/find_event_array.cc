#include "cli/find_event_array.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/bpf.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <cerrno>

#include "base/text.h"

namespace dwell::cli {
namespace {

constexpr const char* kShowAll = "`dwell events --list` shows which there are";
constexpr size_t kNamesMax = 16;  // maps named in one message

bool is_event_array(const BpfMapInfo& map) { return map.type == BPF_MAP_TYPE_PERF_EVENT_ARRAY; }

std::unexpected<Error> wrong_type(const BpfMapInfo& map) {
  return usage_error(fmt::format("BPF map '{}' (id {}) is {}, not a perf event array; {}",
                                 printable(map.name), map.id, bpf_map_type_name(map.type),
                                 kShowAll));
}

Result<std::vector<BpfMapInfo>> list_maps() {
  std::vector<BpfMapInfo> maps;
  for (uint32_t id = 0;;) {
    auto next = next_map_id(id);
    if (!next) return std::unexpected(explain_refusal(next.error()));
    if (!*next) return maps;
    id = **next;
    const auto fd = open_map_by_id(id);
    if (!fd && fd.error().code == ENOENT) continue;  // went in between
    if (!fd) return std::unexpected(explain_refusal(fd.error()));
    if (const auto info = bpf_map_info(fd->get())) maps.push_back(*info);
  }
}

Result<Fd> open_one(uint32_t id) {
  auto fd = open_map_by_id(id);
  if (fd) return fd;
  if (fd.error().code != ENOENT) return std::unexpected(explain_refusal(fd.error()));
  return usage_error(fmt::format("{}; {}", fd.error().message, kShowAll));
}

Result<Fd> open_pin(const std::string& path) {
  struct statfs where = {};
  const bool there = statfs(path.c_str(), &where) == 0;
  if (there && static_cast<uint64_t>(where.f_type) != BPF_FS_MAGIC)
    return usage_error(fmt::format(
        "{} is not in a bpf file system; give the path of a pin, for example below /sys/fs/bpf",
        printable(path)));
  auto fd = open_pinned_map(path);
  if (fd || fd.error().kind == Error::Kind::kUsage) return fd;
  if (there) return std::unexpected(explain_refusal(fd.error()));
  return usage_error(fmt::format("{}; {}", fd.error().message, kShowAll));
}

// The kernel keeps 15 bytes of a name.
bool has_name(const BpfMapInfo& map, const std::string& name) {
  return map.name == name || map.name == name.substr(0, BPF_OBJ_NAME_LEN - 1);
}

Result<Fd> open_named(const std::string& name) {
  DWELL_ASSIGN(const std::vector<BpfMapInfo> maps, list_maps());
  std::vector<uint32_t> ids;
  const BpfMapInfo* other = nullptr;
  for (const BpfMapInfo& map : maps) {
    if (!has_name(map, name)) continue;
    if (is_event_array(map))
      ids.push_back(map.id);
    else
      other = &map;
  }
  if (ids.size() == 1) return open_one(ids[0]);
  if (ids.empty() && other != nullptr) return wrong_type(*other);
  if (ids.empty())
    return usage_error(fmt::format("no BPF map has the name '{}'; {}", printable(name), kShowAll));
  const size_t all = ids.size();
  ids.resize(std::min(all, kNamesMax));
  return usage_error(
      fmt::format("{} perf event arrays have the name '{}': give one of their ids, "
                  "{}{}",
                  all, printable(name), fmt::join(ids, ", "), all > kNamesMax ? ", ..." : ""));
}

}  // namespace

Error explain_refusal(Error error) {
  if (error.code != EPERM && error.code != EACCES) return error;
  error.kind = Error::Kind::kPrivilege;
  error.message +=
      "; run as root: maps are found with CAP_SYS_ADMIN and read with CAP_BPF and CAP_PERFMON";
  return error;
}

Result<std::vector<BpfMapInfo>> list_event_arrays() {
  DWELL_ASSIGN(std::vector<BpfMapInfo> maps, list_maps());
  std::erase_if(maps, [](const BpfMapInfo& map) { return !is_event_array(map); });
  return maps;
}

Result<Fd> find_event_array(const EventsOptions& choice) {
  if (choice.id == std::nullopt && choice.pin.empty()) return open_named(choice.name);
  DWELL_ASSIGN(Fd fd, choice.id ? open_one(*choice.id) : open_pin(choice.pin));
  DWELL_ASSIGN(const BpfMapInfo map, bpf_map_info(fd.get()));
  if (!is_event_array(map)) return wrong_type(map);
  return fd;
}

}  // namespace dwell::cli
