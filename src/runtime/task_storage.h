// Task-local storage: one value per task, which goes with the task. As in the kernel nothing can be
// made on a CPU that was interrupted while it was making some; what is there is found all the same.
#pragma once

#include <atomic>

#include "runtime/map.h"
#include "runtime/task.h"

namespace dwell::runtime {

class TaskStorageMap final : public Map {
 public:
  TaskStorageMap(MapDefinition definition, Machine& machine);

  // For programs. `initial` null: zero. Null: there is none and none could be made.
  void* get(Cpu& cpu, Task& task, const void* initial, bool create);
  int remove(Task& task);

  // For whoever simulates: the kernel has memory for so many values and no more.
  void set_limit(uint64_t values) { limit_ = values; }
  void* find(Task& task) const;

 private:
  const uint64_t id_;  // never used again, so that a task may outlive the map
  Machine& machine_;
  uint64_t limit_ = ~uint64_t{0};
  std::atomic<uint64_t> made_ = 0;
};

}  // namespace dwell::runtime
