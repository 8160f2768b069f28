#include "runtime/array_map.h"

#include <linux/bpf.h>

#include <cerrno>
#include <cstring>

#include "runtime/machine.h"

namespace dwell::runtime {
namespace {

uint32_t index_of(const void* key) {
  uint32_t index;
  std::memcpy(&index, key, sizeof index);
  return index;
}

}  // namespace

ArrayMap::ArrayMap(MapDefinition definition, const Machine& machine, bool per_cpu)
    : Map(std::move(definition)),
      per_cpu_(per_cpu),
      cpus_(per_cpu ? machine.cpu_count() : 1),
      store_(uint64_t{this->definition().max_entries} * cpus_, this->definition().value_bytes) {}

void* ArrayMap::lookup(Cpu& cpu, const void* key) {
  const uint32_t index = index_of(key);
  if (index >= definition().max_entries) return nullptr;
  return element(per_cpu_ ? cpu.id : 0, index);
}

int ArrayMap::check(uint32_t index, uint64_t flags) const {
  if ((flags & ~uint64_t{BPF_F_LOCK}) > BPF_EXIST) return -EINVAL;
  if (index >= definition().max_entries) return -E2BIG;
  return flags == BPF_NOEXIST ? -EEXIST : 0;
}

long ArrayMap::update(Cpu& cpu, const void* key, const void* value, uint64_t flags) {
  const uint32_t index = index_of(key);
  if (const int failure = check(index, flags); failure != 0) return failure;
  std::memcpy(element(per_cpu_ ? cpu.id : 0, index), value, definition().value_bytes);
  return 0;
}

long ArrayMap::erase(Cpu&, const void*) { return -EINVAL; }
int ArrayMap::erase(const void*) { return -EINVAL; }

int ArrayMap::read(const void* key, void* value) {
  const uint32_t index = index_of(key);
  if (index >= definition().max_entries) return -ENOENT;
  const size_t bytes = definition().value_bytes;
  for (uint32_t cpu = 0; cpu < cpus_; ++cpu)
    std::memcpy(static_cast<std::byte*>(value) + cpu * round_up_8(bytes), element(cpu, index),
                bytes);
  return 0;
}

int ArrayMap::write(const void* key, const void* value, uint64_t flags) {
  const uint32_t index = index_of(key);
  if (const int failure = check(index, flags); failure != 0) return failure;
  const size_t bytes = definition().value_bytes;
  for (uint32_t cpu = 0; cpu < cpus_; ++cpu)
    std::memcpy(element(cpu, index), static_cast<const std::byte*>(value) + cpu * round_up_8(bytes),
                bytes);
  return 0;
}

int ArrayMap::next_key(const void* key, void* next) {
  uint32_t index = key == nullptr ? ~0u : index_of(key);
  index = index >= definition().max_entries ? 0 : index + 1;
  if (index == definition().max_entries) return -ENOENT;
  std::memcpy(next, &index, sizeof index);
  return 0;
}

}  // namespace dwell::runtime
