// Program array: where bpf_tail_call goes on. Programs are borrowed from their object.
#pragma once

#include <atomic>
#include <vector>

#include "runtime/map.h"

namespace dwell::runtime {

class Program;

class ProgramArray final : public Map {
 public:
  explicit ProgramArray(MapDefinition definition)
      : Map(std::move(definition)), programs_(this->definition().max_entries) {}

  // Null empties the slot. False: no such slot.
  bool set(uint32_t index, const Program* program) {
    if (index >= programs_.size()) return false;
    programs_[index].store(program, std::memory_order_release);
    return true;
  }
  const Program* program(uint32_t index) const {
    return index < programs_.size() ? programs_[index].load(std::memory_order_acquire) : nullptr;
  }

 private:
  std::vector<std::atomic<const Program*>> programs_;
};

}  // namespace dwell::runtime
