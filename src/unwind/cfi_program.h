// Runs call-frame instructions: what the CFA is and where registers are saved, address by address.
//
// Only the registers that a walk follows are kept: rbx, rbp and the return address. Called by the
// table compiler, for each FDE; a CIE's own instructions run once.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "unwind/cfi_section.h"

namespace dwell::unwind {

// Where a register of the caller is.
struct Saved {
  enum class Kind : uint8_t {
    kUnspecified,
    kUndefined,
    kSame,
    kAtOffset,
    kIsOffset,
    kRegister,
    kAtExpression,
    kIsExpression
  };
  Kind kind = Kind::kUnspecified;
  int64_t value = 0;  // offset from the CFA, or number of the register
  std::string_view expression;
  bool operator==(const Saved&) const = default;
};

struct FrameState {
  bool has_cfa = false;
  uint64_t cfa_register = 0;
  int64_t cfa_offset = 0;
  std::string_view cfa_expression;  // in place of both, if it is not empty
  Saved rbx, rbp, return_address;
};

class CfiProgram {
 public:
  static constexpr size_t kRememberedMax = 64;
  // The state holds from `start` to `end`, which is never empty.
  using OnRange = std::function<void(uint64_t start, uint64_t end, const FrameState& state)>;

  // The state that a CIE begins with; false if its instructions make no sense.
  static bool run_cie(const Cie& cie, FrameState& state);
  // Tells every range of `fde` in order. False from the first instruction on that makes no sense;
  // `reached` is then the address that the ranges before it came to.
  static bool run_fde(const Cie& cie, const FrameState& initial, const Fde& fde,
                      const OnRange& on_range, uint64_t& reached);

 private:
  CfiProgram(const Cie& cie, const FrameState& initial, SectionBytes instructions)
      : cie_(cie),
        initial_(initial),
        state_(initial),
        reader_(instructions.bytes, instructions.address) {}
  bool step(const Fde* fde, const OnRange* on_range);
  bool step_extended(uint8_t opcode);
  bool advance(uint64_t units, const Fde* fde, const OnRange* on_range);
  bool advance_to(uint64_t address, const Fde* fde, const OnRange* on_range);
  bool restore_state();
  void define_cfa(uint64_t number, int64_t offset);
  void save(uint64_t number, Saved saved);
  void restore(uint64_t number);
  using Slot = Saved FrameState::*;
  Slot slot(uint64_t number) const;  // null for a register that nobody follows
  int64_t factored(uint64_t value) const {
    return static_cast<int64_t>(value * static_cast<uint64_t>(cie_.data_alignment));
  }

  const Cie& cie_;
  const FrameState& initial_;
  FrameState state_;
  CfiReader reader_;
  uint64_t address_ = 0;
  std::vector<FrameState> remembered_;
};

}  // namespace dwell::unwind
