#include "runtime/task_storage.h"

#include <cerrno>
#include <cstring>
#include <mutex>

#include "runtime/frame.h"

namespace dwell::runtime {
namespace {

std::atomic<uint64_t> next_id = 1;

}  // namespace

TaskStorageMap::TaskStorageMap(MapDefinition definition, Machine& machine)
    : Map(std::move(definition)), id_(next_id.fetch_add(1)), machine_(machine) {}

void* TaskStorageMap::find(Task& task) const {
  const std::lock_guard lock(task.storage_lock_);
  for (const Task::Stored& stored : task.storage_)
    if (stored.map_id == id_) return stored.value.get();
  return nullptr;
}

void* TaskStorageMap::get(Cpu& cpu, Task& task, const void* initial, bool create) {
  if (void* found = find(task); found != nullptr || !create) return found;
  if (cpu.storage_busy != 0) return nullptr;
  ++cpu.storage_busy;
  machine_.interrupt(InterruptPoint::kInsideStorage, cpu.id, running_program());
  --cpu.storage_busy;
  if (made_.fetch_add(1, std::memory_order_relaxed) >= limit_) return nullptr;
  const size_t bytes = definition().value_bytes;
  auto value = std::make_unique<uint64_t[]>(round_up_8(bytes) / sizeof(uint64_t));
  if (initial != nullptr) std::memcpy(value.get(), initial, bytes);
  const std::lock_guard lock(task.storage_lock_);
  for (const Task::Stored& stored : task.storage_)
    if (stored.map_id == id_) return stored.value.get();  // another CPU was faster
  task.storage_.push_back({id_, std::move(value)});
  return task.storage_.back().value.get();
}

int TaskStorageMap::remove(Task& task) {
  const std::lock_guard lock(task.storage_lock_);
  return std::erase_if(task.storage_,
                       [&](const Task::Stored& stored) { return stored.map_id == id_; }) != 0
             ? 0
             : -ENOENT;
}

}  // namespace dwell::runtime
