#include "runtime/map.h"

#include <fmt/format.h>
#include <linux/bpf.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "runtime/array_map.h"
#include "runtime/event_map.h"
#include "runtime/hash_map.h"
#include "runtime/machine.h"
#include "runtime/program_array.h"
#include "runtime/ring_buffer_map.h"
#include "runtime/stack_map.h"
#include "runtime/task_storage.h"

namespace dwell::runtime {
namespace {

template <typename Made>
Result<std::unique_ptr<Map>> as_map(Result<std::unique_ptr<Made>> made) {
  if (!made) return std::unexpected(std::move(made.error()));
  return std::unique_ptr<Map>(std::move(*made));
}

bool has_frames_for_values(const MapDefinition& d) {
  return d.value_bytes != 0 && d.value_bytes % sizeof(uint64_t) == 0;
}

// The checks of map_create: what the kernel answers with -EINVAL.
bool is_sound(const MapDefinition& d) {
  switch (d.type) {
    case BPF_MAP_TYPE_HASH:
    case BPF_MAP_TYPE_PERCPU_HASH:
      return d.key_bytes != 0 && d.value_bytes != 0 && d.max_entries != 0;
    case BPF_MAP_TYPE_ARRAY:
    case BPF_MAP_TYPE_PERCPU_ARRAY:
      return d.key_bytes == 4 && d.value_bytes != 0 && d.max_entries != 0;
    case BPF_MAP_TYPE_STACK_TRACE:
      return d.key_bytes == 4 && has_frames_for_values(d) && d.max_entries != 0;
    case BPF_MAP_TYPE_TASK_STORAGE:
      return d.key_bytes == 4 && d.value_bytes != 0 && d.max_entries == 0 &&
             (d.flags & BPF_F_NO_PREALLOC) != 0;
    case BPF_MAP_TYPE_PROG_ARRAY:
    case BPF_MAP_TYPE_PERF_EVENT_ARRAY:
      return d.key_bytes == 4 && d.value_bytes == 4;
    default:
      return true;
  }
}

}  // namespace

Map& Map::of(const void* handle) {
  Map* map = handle == nullptr ? nullptr : *static_cast<Map* const*>(handle);
  if (map == nullptr) {
    std::fprintf(stderr,
                 "dwell runtime: a program used a map that is not there: load its object first "
                 "(Object::load)\n");
    std::abort();
  }
  return *map;
}

Result<std::unique_ptr<Map>> create_map(const MapDefinition& d, Machine& machine) {
  const uint64_t cpus = machine.cpu_count();
  const uint64_t bytes = (uint64_t{d.key_bytes} + d.value_bytes * cpus) * d.max_entries;
  if (!is_sound(d) || bytes > kMaxMapBytes)
    return errno_error(
        EINVAL, fmt::format("cannot create map {} of type {}: {} entries of {} + {} bytes, "
                            "flags {:#x}",
                            d.name, d.type, d.max_entries, d.key_bytes, d.value_bytes, d.flags));
  switch (d.type) {
    case BPF_MAP_TYPE_HASH:
    case BPF_MAP_TYPE_PERCPU_HASH:
      return std::make_unique<HashMap>(d, machine, d.type == BPF_MAP_TYPE_PERCPU_HASH);
    case BPF_MAP_TYPE_ARRAY:
    case BPF_MAP_TYPE_PERCPU_ARRAY:
      return std::make_unique<ArrayMap>(d, machine, d.type == BPF_MAP_TYPE_PERCPU_ARRAY);
    case BPF_MAP_TYPE_STACK_TRACE:
      return std::make_unique<StackMap>(d);
    case BPF_MAP_TYPE_TASK_STORAGE:
      return std::make_unique<TaskStorageMap>(d, machine);
    case BPF_MAP_TYPE_PROG_ARRAY:
      return std::make_unique<ProgramArray>(d);
    case BPF_MAP_TYPE_PERF_EVENT_ARRAY:
      return as_map(EventMap::create(d, machine));
    case BPF_MAP_TYPE_RINGBUF:
      return as_map(RingBufferMap::create(d));
    default:
      return errno_error(EINVAL, fmt::format("cannot create map {}: the runtime has no maps of "
                                             "type {} (docs/runtime.md lists those it has)",
                                             d.name, d.type));
  }
}

}  // namespace dwell::runtime
