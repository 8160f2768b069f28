// Time, place, the current task, stacks.
#include <linux/bpf.h>

#include <algorithm>
#include <cstring>

#include "runtime/calls.h"
#include "runtime/stack_map.h"

namespace dwell::runtime {
namespace {

std::span<const uint64_t> stack_of(const Task* task, uint64_t flags) {
  if (task == nullptr) return {};
  return (flags & BPF_F_USER_STACK) != 0 ? task->user_stack : task->kernel_stack;
}

// Copies frames, leaf first; what is left of the buffer becomes zero. Bytes copied or -errno.
long copy_stack(std::span<const uint64_t> stack, void* buffer, uint32_t size, uint64_t flags) {
  auto* to = static_cast<std::byte*>(buffer);
  const uint64_t skip = flags & BPF_F_SKIP_FIELD_MASK;
  long result = -EFAULT;
  if ((flags & ~uint64_t{BPF_F_SKIP_FIELD_MASK | BPF_F_USER_STACK}) != 0 || size % 8 != 0)
    result = -EINVAL;
  else if (!stack.empty() && stack.size() >= skip)
    result = static_cast<long>(std::min<size_t>((stack.size() - skip) * 8, size));
  const size_t copied = result > 0 ? static_cast<size_t>(result) : 0;
  if (copied != 0) std::memcpy(to, stack.data() + skip, copied);
  std::memset(to + copied, 0, size - copied);
  return result;
}

}  // namespace

extern "C" {

uint64_t dwell_bpf_ktime_get_ns() {
  Frame& f = enter_call();
  return f.machine.clock(f.cpu);
}

uint64_t dwell_bpf_ktime_get_boot_ns() {
  Frame& f = enter_call();
  return f.machine.clock(f.cpu) + f.machine.boot_offset();
}

uint32_t dwell_bpf_get_smp_processor_id() { return enter_call().cpu.id; }

uint32_t dwell_bpf_get_prandom_u32() {
  uint64_t& random = enter_call().cpu.random;
  random ^= random << 13;
  random ^= random >> 7;
  random ^= random << 17;
  return static_cast<uint32_t>(random >> 32);
}

uint64_t dwell_bpf_get_current_pid_tgid() {
  const Task* task = enter_call().cpu.current;
  return task == nullptr ? 0 : uint64_t{task->tgid} << 32 | task->pid;
}

uint64_t dwell_bpf_get_current_uid_gid() {
  const Task* task = enter_call().cpu.current;
  return task == nullptr ? 0 : uint64_t{task->gid} << 32 | task->uid;
}

long dwell_bpf_get_current_comm(void* buffer, uint32_t size) {
  const Task* task = enter_call().cpu.current;
  std::memset(buffer, 0, size);
  if (task == nullptr || size == 0) return -EINVAL;
  std::memcpy(buffer, task->comm,
              std::min<size_t>(size - 1, strnlen(task->comm, sizeof task->comm)));
  return 0;
}

void* dwell_bpf_get_current_task_btf() {
  Task* task = enter_call().cpu.current;
  return task == nullptr ? nullptr : task->kernel();
}

uint64_t dwell_bpf_get_current_task() {
  return reinterpret_cast<uint64_t>(dwell_bpf_get_current_task_btf());
}

long dwell_bpf_task_pt_regs(void* task) {
  enter_call();
  return reinterpret_cast<long>(Task::of(task).user_registers);
}

long dwell_bpf_get_stackid(void*, void* map, uint64_t flags) {
  Frame& f = enter_call();
  auto* stacks = map_as<StackMap>(map);
  return stacks == nullptr ? -EINVAL : stacks->store(stack_of(f.cpu.current, flags), flags);
}

long dwell_bpf_get_stack(void*, void* buffer, uint32_t size, uint64_t flags) {
  Frame& f = enter_call();
  return copy_stack(stack_of(f.cpu.current, flags), buffer, size, flags);
}

long dwell_bpf_get_task_stack(void* task, void* buffer, uint32_t size, uint64_t flags) {
  Frame& f = enter_call();
  const Task& of = Task::of(task);
  if ((flags & BPF_F_USER_STACK) != 0 && &of != f.cpu.current) {
    std::memset(buffer, 0, size);
    return -EOPNOTSUPP;
  }
  return copy_stack(stack_of(&of, flags), buffer, size, flags);
}

int dwell_core_exists(const char* what) { return !frame().machine.is_missing(what); }

}  // extern "C"

}  // namespace dwell::runtime
