#include "event_array/bpf_map.h"

#include <fmt/format.h>
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace dwell {
inline namespace v0 {
namespace {

long bpf(int command, bpf_attr& attr) { return syscall(SYS_bpf, command, &attr, sizeof attr); }

uint64_t address_of(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// All BPF objects are pinned alike; only their descriptors say what they are.
bool is_map(int fd) {
  char target[64] = {};
  const std::string link = fmt::format("/proc/self/fd/{}", fd);
  // Without /proc nothing can be told, and the queries that follow decide.
  if (readlink(link.c_str(), target, sizeof target - 1) < 0) return true;
  return std::strstr(target, "bpf-map") != nullptr;
}

}  // namespace

const char* bpf_map_type_name(uint32_t type) {
  switch (type) {
    case BPF_MAP_TYPE_HASH:
      return "a hash";
    case BPF_MAP_TYPE_ARRAY:
      return "an array";
    case BPF_MAP_TYPE_PROG_ARRAY:
      return "a program array";
    case BPF_MAP_TYPE_PERF_EVENT_ARRAY:
      return "a perf event array";
    case BPF_MAP_TYPE_PERCPU_HASH:
      return "a per-CPU hash";
    case BPF_MAP_TYPE_PERCPU_ARRAY:
      return "a per-CPU array";
    case BPF_MAP_TYPE_STACK_TRACE:
      return "a stack trace map";
    case BPF_MAP_TYPE_RINGBUF:
      return "a BPF ring buffer";
    default:
      return "of another type";
  }
}

Result<BpfMapInfo> bpf_map_info(int map_fd) {
  struct ::bpf_map_info raw = {};
  bpf_attr attr = {};
  attr.info.bpf_fd = static_cast<uint32_t>(map_fd);
  attr.info.info_len = sizeof raw;
  attr.info.info = address_of(&raw);
  if (bpf(BPF_OBJ_GET_INFO_BY_FD, attr) != 0) {
    // This call says EBADFD where all others say EBADF.
    const int code = errno == EBADFD ? EBADF : errno;
    return errno_error(code, fmt::format("cannot query BPF map descriptor {}", map_fd));
  }
  BpfMapInfo info{raw.type,      raw.id, raw.key_size, raw.value_size, raw.max_entries,
                  raw.map_flags, {}};
  info.name.assign(raw.name, strnlen(raw.name, sizeof raw.name));
  return info;
}

Result<BpfMapInfo> require_perf_event_array(int map_fd) {
  DWELL_ASSIGN(BpfMapInfo info, bpf_map_info(map_fd));
  // EINVAL as libbpf has it for the same mistake.
  if (info.type != BPF_MAP_TYPE_PERF_EVENT_ARRAY)
    return std::unexpected(Error{
        Error::Kind::kUsage,
        fmt::format("BPF map '{}' is {} (type {}), not a perf event array; give the descriptor of "
                    "a BPF_MAP_TYPE_PERF_EVENT_ARRAY",
                    printable(info.name), bpf_map_type_name(info.type), info.type),
        EINVAL});
  return info;
}

Result<Fd> open_pinned_map(const std::string& path) {
  bpf_attr attr = {};
  attr.pathname = address_of(path.c_str());
  Fd fd(static_cast<int>(bpf(BPF_OBJ_GET, attr)));
  if (!fd) return errno_error(errno, "cannot open the BPF map pinned at " + printable(path));
  if (!is_map(fd.get()))
    return usage_error(
        fmt::format("{} is not a BPF map but another BPF object; give the path of "
                    "a pinned map",
                    printable(path)));
  return fd;
}

Result<Fd> open_map_by_id(uint32_t id) {
  bpf_attr attr = {};
  attr.map_id = id;
  Fd fd(static_cast<int>(bpf(BPF_MAP_GET_FD_BY_ID, attr)));
  if (!fd) return errno_error(errno, fmt::format("cannot open the BPF map with id {}", id));
  return fd;
}

Result<std::optional<uint32_t>> next_map_id(uint32_t id) {
  bpf_attr attr = {};
  attr.start_id = id;
  if (bpf(BPF_MAP_GET_NEXT_ID, attr) == 0) return attr.next_id;
  if (errno == ENOENT) return std::nullopt;
  return errno_error(errno, "cannot list the BPF maps of this machine");
}

Result<Fd> reopen_map(int map_fd) {
  DWELL_ASSIGN(const BpfMapInfo info, bpf_map_info(map_fd));
  return open_map_by_id(info.id);
}

Status set_map_slot(int map_fd, uint32_t index, int event_fd) {
  bpf_attr attr = {};
  attr.map_fd = static_cast<uint32_t>(map_fd);
  attr.key = address_of(&index);
  attr.value = address_of(&event_fd);
  attr.flags = BPF_ANY;
  if (bpf(BPF_MAP_UPDATE_ELEM, attr) != 0)
    return errno_error(errno, fmt::format("cannot set slot {} of the perf event array", index));
  return {};
}

Status clear_map_slot(int map_fd, uint32_t index) {
  bpf_attr attr = {};
  attr.map_fd = static_cast<uint32_t>(map_fd);
  attr.key = address_of(&index);
  if (bpf(BPF_MAP_DELETE_ELEM, attr) != 0 && errno != ENOENT)
    return errno_error(errno, fmt::format("cannot clear slot {} of the perf event array", index));
  return {};
}

}  // namespace v0
}  // namespace dwell
