// Maps, task-local storage, tail calls.
#include <linux/bpf.h>

#include "runtime/calls.h"
#include "runtime/program.h"
#include "runtime/program_array.h"
#include "runtime/task_storage.h"

namespace dwell::runtime {
namespace {

constexpr uint32_t kMostTailCalls = 33;  // the kernel's MAX_TAIL_CALL_CNT

}  // namespace

extern "C" {

void* dwell_bpf_map_lookup_elem(void* map, const void* key) {
  return Map::of(map).lookup(enter_call().cpu, key);
}

long dwell_bpf_map_update_elem(void* map, const void* key, const void* value, uint64_t flags) {
  return Map::of(map).update(enter_call().cpu, key, value, flags);
}

long dwell_bpf_map_delete_elem(void* map, const void* key) {
  return Map::of(map).erase(enter_call().cpu, key);
}

void* dwell_bpf_task_storage_get(void* map, void* task, void* value, uint64_t flags) {
  Frame& f = enter_call();
  if (task == nullptr || (flags & ~uint64_t{BPF_LOCAL_STORAGE_GET_F_CREATE}) != 0) return nullptr;
  auto& storage = static_cast<TaskStorageMap&>(Map::of(map));
  return storage.get(f.cpu, Task::of(task), value, flags != 0);
}

long dwell_bpf_task_storage_delete(void* map, void* task) {
  Frame& f = enter_call();
  if (task == nullptr) return -EINVAL;
  if (f.cpu.storage_busy != 0) return -EBUSY;
  return static_cast<TaskStorageMap&>(Map::of(map)).remove(Task::of(task));
}

long dwell_bpf_tail_call(void* ctx, void* programs, uint32_t index) {
  Frame& f = enter_call();
  const auto* array = map_as<ProgramArray>(programs);
  const Program* program = array == nullptr ? nullptr : array->program(index);
  if (program == nullptr || f.tail_calls >= kMostTailCalls) return -ENOENT;
  ++f.tail_calls;
  f.tail_result = program->run_in_frame(ctx);
  std::longjmp(*f.unwind, 1);
}

}  // extern "C"

}  // namespace dwell::runtime
