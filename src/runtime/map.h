// A BPF map. Programs reach it through the calls (calls_maps.cc), user space through read, write,
// erase and next_key, which answer as bpf(2) does: 0 or minus an errno. Values keep their address
// until they are deleted; then the place may be used again at once, as in the kernel. Structure is
// guarded, values are not: programs that share them use atomics, as in the kernel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace dwell::runtime {

struct Cpu;
class Machine;

struct MapDefinition {
  std::string name;
  uint32_t type = 0;  // enum bpf_map_type
  uint32_t key_bytes = 0;
  uint32_t value_bytes = 0;
  uint32_t max_entries = 0;
  uint32_t flags = 0;
  // Perf event arrays only: what the reader decides in the kernel.
  uint64_t ring_bytes = 64 << 10;
  bool overwrite = false;
};

inline constexpr int kNotSupported = 524;  // ENOTSUPP of the kernel, which has no name here
inline constexpr uint64_t kMaxMapBytes = uint64_t{1} << 40;  // of address space, touched lazily

constexpr size_t round_up_8(size_t bytes) { return (bytes + 7) & ~size_t{7}; }

class Map {
 public:
  explicit Map(MapDefinition definition) : definition_(std::move(definition)) {}
  virtual ~Map() = default;
  Map(const Map&) = delete;
  Map& operator=(const Map&) = delete;

  const MapDefinition& definition() const { return definition_; }
  // What a program has as the map: its first word says which one it is.
  void* handle() { return &self_; }
  static Map& of(const void* handle);

  // For programs, running on `cpu`.
  virtual void* lookup(Cpu&, const void*) { return nullptr; }
  virtual long update(Cpu&, const void*, const void*, uint64_t) { return -kNotSupported; }
  virtual long erase(Cpu&, const void*) { return -kNotSupported; }

  // For user space. Values of per-CPU maps are round_up_8(value_bytes) times the machine's CPUs.
  virtual int read(const void*, void*) { return -kNotSupported; }
  virtual int write(const void*, const void*, uint64_t) { return -kNotSupported; }
  virtual int erase(const void*) { return -kNotSupported; }
  // The key after `key`; the first if that is null or gone.
  virtual int next_key(const void*, void*) { return -kNotSupported; }

 private:
  Map* self_ = this;
  MapDefinition definition_;
};

// Any type this runtime has; its machine tells how many CPUs per-CPU values are for.
Result<std::unique_ptr<Map>> create_map(const MapDefinition& definition, Machine& machine);

}  // namespace dwell::runtime
