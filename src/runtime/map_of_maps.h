// Array of maps and hash of maps. The inner maps are like the one in the declaration; user space
// puts them in place. They are borrowed and must outlive their place here. A program that looked
// one up before it was replaced goes on with the old one: replace while none runs, or between runs.
#pragma once

#include <map>
#include <vector>

#include "runtime/map.h"
#include "runtime/spin_lock.h"

namespace dwell::runtime {

class MapOfMaps final : public Map {
 public:
  MapOfMaps(MapDefinition definition, MapDefinition inner, bool is_array);

  void* lookup(Cpu& cpu, const void* key) override;

  // 0, -EINVAL if `map` is unlike the declared one, -E2BIG.
  int set_inner(const void* key, Map& map);
  int erase(const void* key) override;
  Map* inner(const void* key);
  const MapDefinition& inner_definition() const { return inner_; }

 private:
  std::string key_of(const void* key) const;

  MapDefinition inner_;
  bool is_array_;
  SpinLock lock_;
  std::map<std::string, Map*> maps_;
};

}  // namespace dwell::runtime
