#include "runtime/map_of_maps.h"

#include <linux/bpf.h>

#include <cerrno>
#include <cstring>
#include <mutex>

namespace dwell::runtime {

MapOfMaps::MapOfMaps(MapDefinition definition, MapDefinition inner, bool is_array)
    : Map(std::move(definition)), inner_(std::move(inner)), is_array_(is_array) {}

std::string MapOfMaps::key_of(const void* key) const {
  return {static_cast<const char*>(key), definition().key_bytes};
}

Map* MapOfMaps::inner(const void* key) {
  const std::lock_guard lock(lock_);
  const auto found = maps_.find(key_of(key));
  return found == maps_.end() ? nullptr : found->second;
}

void* MapOfMaps::lookup(Cpu&, const void* key) {
  Map* map = inner(key);
  return map == nullptr ? nullptr : map->handle();
}

int MapOfMaps::set_inner(const void* key, Map& map) {
  const MapDefinition& given = map.definition();
  const bool sized = given.type == BPF_MAP_TYPE_ARRAY;  // there the number of entries counts too
  if (given.type != inner_.type || given.key_bytes != inner_.key_bytes ||
      given.value_bytes != inner_.value_bytes || given.flags != inner_.flags ||
      (sized && given.max_entries != inner_.max_entries))
    return -EINVAL;
  if (is_array_) {
    uint32_t index;
    std::memcpy(&index, key, sizeof index);
    if (index >= definition().max_entries) return -E2BIG;
  }
  const std::lock_guard lock(lock_);
  const std::string at = key_of(key);
  if (!maps_.contains(at) && maps_.size() >= definition().max_entries) return -E2BIG;
  maps_[at] = &map;
  return 0;
}

int MapOfMaps::erase(const void* key) {
  const std::lock_guard lock(lock_);
  return maps_.erase(key_of(key)) == 1 ? 0 : -ENOENT;
}

}  // namespace dwell::runtime
