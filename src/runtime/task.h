// A simulated task. Its kernel struct is whatever the program's own `struct task_struct` is: its
// bytes follow the Task in memory, so that a pointer that a program passes leads back here. Task-
// local storage hangs on the task and goes with it. Made and freed by Machine; whoever simulates
// fills in the facts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/memory.h"
#include "runtime/spin_lock.h"

namespace dwell::runtime {

class Machine;

class alignas(16) Task {
 public:
  static constexpr size_t kCommBytes = 16;

  // The task of a pointer that a program passed. Aborts if it is none: the verifier would have
  // refused the program.
  static Task& of(const void* kernel_struct);

  void* kernel() { return this + 1; }
  template <typename Struct>
  Struct& as() {
    return *static_cast<Struct*>(kernel());
  }

  // In the kernel's words: tgid is the process, pid the thread.
  uint32_t tgid = 0;
  uint32_t pid = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  char comm[kCommBytes] = {};
  const void* user_registers = nullptr;  // what bpf_task_pt_regs gives; borrowed
  const Memory* user_memory = nullptr;   // borrowed; null: every read faults
  // Leaf first, borrowed; asked for by the calls that take a stack.
  std::span<const uint64_t> kernel_stack;
  std::span<const uint64_t> user_stack;

  void set_comm(std::string_view name);

 private:
  friend class Machine;
  friend class TaskStorageMap;

  struct Stored {
    uint64_t map_id;
    std::unique_ptr<uint64_t[]> value;
  };

  Task() = default;
  ~Task();

  static constexpr uint64_t kMagic = 0x6b736174'6c6c6577;
  uint64_t magic_ = kMagic;
  mutable SpinLock storage_lock_;
  std::vector<Stored> storage_;
};

}  // namespace dwell::runtime
