// A perf event array as a BPF map descriptor: what it is, and its slots. Thin over bpf(2), so that
// the library needs no libbpf.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace dwell {
inline namespace v0 {

struct BpfMapInfo {
  uint32_t type = 0;
  uint32_t id = 0;
  uint32_t key_size = 0;
  uint32_t value_size = 0;
  uint32_t max_entries = 0;
  uint32_t flags = 0;
  std::string name;
};

Result<BpfMapInfo> bpf_map_info(int map_fd);

// An error that names the type if the map is no perf event array. EBADF if `map_fd` is no
// descriptor.
Result<BpfMapInfo> require_perf_event_array(int map_fd);

// "a hash", "a perf event array": for sentences.
const char* bpf_map_type_name(uint32_t type);

// An error if what is pinned there is a program or a link.
Result<Fd> open_pinned_map(const std::string& path);
Result<Fd> open_map_by_id(uint32_t id);
// The smallest id above `id` that a map of this machine has; none if there is none.
Result<std::optional<uint32_t>> next_map_id(uint32_t id);
// A descriptor of its own for the same map. Closing one clears the slots that were set through it,
// unless the map has BPF_F_PRESERVE_ELEMS.
Result<Fd> reopen_map(int map_fd);

Status set_map_slot(int map_fd, uint32_t index, int event_fd);
// An empty slot is no error.
Status clear_map_slot(int map_fd, uint32_t index);

}  // namespace v0
}  // namespace dwell
