// The scheduler's own code (section .sched.text): where it lies, its functions, its bytes. The
// kernel's walker leaves these functions out of a sleeping thread's stack, among them the locks
// that people look for (mutex_lock, rwsem_down_read_slowpath, io_schedule). They are found again in
// the words of the stack: each return address there is one after a call of the function below it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "abi/off_cpu.h"
#include "probe/signature.h"

namespace dwell::probe {

class SchedulerCode {
 public:
  struct Function {
    uint64_t start = 0;
    std::string name;
  };

  SchedulerCode() = default;
  SchedulerCode(SchedulerText text, std::vector<Function> functions, std::vector<uint8_t> bytes)
      : text_(text), functions_(std::move(functions)), bytes_(std::move(bytes)) {}

  const SchedulerText& text() const { return text_; }
  // Without the bytes nothing can be found on a stack.
  void set_bytes(std::vector<uint8_t> bytes) { bytes_ = std::move(bytes); }

  // Is `return_address` in schedule() or its like? Those are on every stack and are never shown.
  bool is_switch(uint64_t return_address) const;

  // The scheduler's frames between the switch and the first walked frame, leaf first, without those
  // of is_switch; empty if the words do not tell. `before_walked`: the kBranchBytes bytes before
  // the first walked address, if they are known; they tell whether a frame is missing because it
  // was entered by an indirect call.
  static constexpr uint64_t kBranchBytes = 5;
  std::vector<uint64_t> frames_of(const dwell_kernel_stack_sample& sample,
                                  std::span<const uint8_t> before_walked = {}) const;

 private:
  // Follows the calls from `callee` up to the first walked address, from word `at` on. Appends to
  // `frames`; returns the outermost function, null if the walked address was not met.
  const Function* follow(const dwell_kernel_stack_sample& sample, size_t at, const Function* callee,
                         std::vector<uint64_t>& frames) const;
  // Is `function` what a call with these bytes before `return_address` enters?
  bool enters(std::span<const uint8_t> call, uint64_t return_address,
              const Function& function) const;
  bool is_indirect_call(uint64_t return_address) const;
  bool leads_to(uint64_t target, const Function& function) const;
  const Function* function_at(uint64_t address) const;
  // Does the instruction before `return_address` call `function`, or one that jumps to it?
  bool calls(uint64_t return_address, const Function& function) const;
  bool jumps_to(const Function& from, uint64_t target) const;
  // Where the call or jump with a 32-bit distance leads that begins with `opcode` at `at`; 0: none.
  uint64_t branch_target(uint64_t at, uint8_t opcode) const;

  SchedulerText text_;
  std::vector<Function> functions_;  // ascending
  std::vector<uint8_t> bytes_;       // of the whole text
};

// Place and functions, from kallsyms; empty where it does not tell: kernel.kptr_restrict, or no
// CAP_SYSLOG.
SchedulerCode find_scheduler_code();

}  // namespace dwell::probe
