// The BPF object of the probe, in one of its two builds. The only file that sees the skeletons.
#pragma once

#include <bpf/libbpf.h>

#include <memory>
#include <span>

#include "abi/off_cpu.h"

namespace dwell::probe {

enum class Build {
  kTyped,  // tp_btf, task-local storage, kernel stacks at switch-in by signature
  kRaw,  // raw_tp, state in a hash map, kernel stacks walked at switch-out: for kernels that refuse
         // the other, 5.10 to 5.16 first of all
};

class ProbeObject {
 public:
  // Null with errno set if there is no memory.
  static std::unique_ptr<ProbeObject> open(Build build);
  virtual ~ProbeObject() = default;

  // Before load.
  virtual dwell_config& config() = 0;
  // After load: shared with the handlers.
  virtual volatile dwell_window& window() = 0;
  virtual uint8_t* target_hints() = 0;
  virtual volatile uint32_t& unprepared() = 0;
  virtual std::span<const uint8_t> kernel_chunk() = 0;  // where read_kernel leaves what it read

  int load();  // 0, or a negative errno
  int attach();
  std::span<const uint8_t> elf() const {
    return {static_cast<const uint8_t*>(skeleton_->data), skeleton_->data_sz};
  }
  bpf_object* object() const { return skeleton_->obj ? *skeleton_->obj : nullptr; }
  bpf_map* map(const char* name) const { return bpf_object__find_map_by_name(object(), name); }
  int map_fd(const char* name) const { return bpf_map__fd(map(name)); }
  // Null if this build has no such program.
  bpf_program* program(const char* name) const {
    return bpf_object__find_program_by_name(object(), name);
  }
  const bpf_link* link(const char* program) const;

 protected:
  bpf_object_skeleton* skeleton_ = nullptr;
};

}  // namespace dwell::probe
