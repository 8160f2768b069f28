#include "runtime/machine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

namespace dwell::runtime {

Task::~Task() { magic_ = 0; }

Task& Task::of(const void* kernel_struct) {
  Task* task = const_cast<Task*>(static_cast<const Task*>(kernel_struct)) - 1;
  if (kernel_struct == nullptr || task->magic_ != kMagic) {
    std::fprintf(stderr,
                 "dwell runtime: a program passed %p as a task, which is none of the machine's\n",
                 kernel_struct);
    std::abort();
  }
  return *task;
}

void Task::set_comm(std::string_view name) {
  std::memset(comm, 0, sizeof comm);
  std::memcpy(comm, name.data(), std::min(name.size(), sizeof comm - 1));
}

Machine::Machine(uint32_t cpus) : cpus_(std::clamp(cpus, 1u, kMaxCpus)) {
  for (uint32_t i = 0; i < cpus_.size(); ++i) {
    cpus_[i].id = i;
    cpus_[i].random = 0x9e3779b97f4a7c15ull * (i + 1);
  }
}

Machine::~Machine() {
  while (!tasks_.empty()) free_task(**tasks_.begin());
}

Task& Machine::create_task(size_t kernel_struct_bytes) {
  void* memory = std::calloc(1, sizeof(Task) + kernel_struct_bytes);
  if (memory == nullptr) std::abort();
  Task* task = new (memory) Task();
  const std::lock_guard lock(tasks_mutex_);
  tasks_.insert(task);
  return *task;
}

void Machine::free_task(Task& task) {
  {
    const std::lock_guard lock(tasks_mutex_);
    tasks_.erase(&task);
  }
  task.~Task();
  std::free(&task);
}

void Machine::trace(std::string line) {
  const std::lock_guard lock(trace_mutex_);
  if (trace_.size() == kMaxTraceLines) trace_.pop_front();
  trace_.push_back(std::move(line));
}

std::vector<std::string> Machine::take_trace() {
  const std::lock_guard lock(trace_mutex_);
  std::vector<std::string> lines(trace_.begin(), trace_.end());
  trace_.clear();
  return lines;
}

}  // namespace dwell::runtime
