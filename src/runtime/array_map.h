// Array and per-CPU array maps: all elements exist from the start and are zero; none can be
// deleted. A CPU's elements lie together.
#pragma once

#include "runtime/element_store.h"
#include "runtime/map.h"

namespace dwell::runtime {

class ArrayMap final : public Map {
 public:
  ArrayMap(MapDefinition definition, const Machine& machine, bool per_cpu);

  void* lookup(Cpu& cpu, const void* key) override;
  long update(Cpu& cpu, const void* key, const void* value, uint64_t flags) override;
  long erase(Cpu& cpu, const void* key) override;
  int read(const void* key, void* value) override;
  int write(const void* key, const void* value, uint64_t flags) override;
  int erase(const void* key) override;
  int next_key(const void* key, void* next) override;

  // The element itself, where user space would have mapped the map.
  void* element(uint32_t cpu, uint32_t index) {
    return store_.at(uint64_t{cpu} * definition().max_entries + index);
  }

 private:
  int check(uint32_t index, uint64_t flags) const;

  bool per_cpu_;
  uint32_t cpus_;
  ElementStore store_;
};

}  // namespace dwell::runtime
