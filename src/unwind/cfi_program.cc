#include "unwind/cfi_program.h"

#include <algorithm>

#include "abi/unwind.h"

namespace dwell::unwind {
namespace {

enum Opcode : uint8_t {
  kAdvance = 0x40,  // the number in the low six bits
  kOffset = 0x80,
  kRestore = 0xc0,
  kNop = 0x00,
  kSetLocation = 0x01,
  kAdvance1 = 0x02,
  kAdvance2 = 0x03,
  kAdvance4 = 0x04,
  kOffsetExtended = 0x05,
  kRestoreExtended = 0x06,
  kUndefined = 0x07,
  kSameValue = 0x08,
  kRegister = 0x09,
  kRememberState = 0x0a,
  kRestoreState = 0x0b,
  kDefineCfa = 0x0c,
  kDefineCfaRegister = 0x0d,
  kDefineCfaOffset = 0x0e,
  kDefineCfaExpression = 0x0f,
  kExpression = 0x10,
  kOffsetExtendedSigned = 0x11,
  kDefineCfaSigned = 0x12,
  kDefineCfaOffsetSigned = 0x13,
  kValueOffset = 0x14,
  kValueOffsetSigned = 0x15,
  kValueExpression = 0x16,
  kAdvance8 = 0x1d,
  kArgumentsSize = 0x2e,
  kNegativeOffsetExtended = 0x2f,
};

}  // namespace

CfiProgram::Slot CfiProgram::slot(uint64_t number) const {
  if (number == cie_.return_register) return &FrameState::return_address;
  if (number == DWELL_REGISTER_RBP) return &FrameState::rbp;
  if (number == DWELL_REGISTER_RBX) return &FrameState::rbx;
  return nullptr;
}

void CfiProgram::save(uint64_t number, Saved saved) {
  if (const Slot at = slot(number)) state_.*at = saved;
}

void CfiProgram::restore(uint64_t number) {
  if (const Slot at = slot(number)) state_.*at = initial_.*at;
}

void CfiProgram::define_cfa(uint64_t number, int64_t offset) {
  state_.has_cfa = true;
  state_.cfa_register = number;
  state_.cfa_offset = offset;
  state_.cfa_expression = {};
}

bool CfiProgram::advance(uint64_t units, const Fde* fde, const OnRange* on_range) {
  uint64_t bytes, to;
  if (__builtin_mul_overflow(units, cie_.code_alignment, &bytes) ||
      __builtin_add_overflow(address_, bytes, &to))
    to = UINT64_MAX;
  return advance_to(to, fde, on_range);
}

bool CfiProgram::advance_to(uint64_t address, const Fde* fde, const OnRange* on_range) {
  if (fde == nullptr || address < address_) return false;  // a CIE holds everywhere
  const uint64_t end = std::min(address, fde->end);
  if (end > address_) (*on_range)(address_, end, state_);
  address_ = end;
  return true;
}

bool CfiProgram::restore_state() {
  if (remembered_.empty()) return false;
  state_ = remembered_.back();
  remembered_.pop_back();
  return true;
}

bool CfiProgram::step(const Fde* fde, const OnRange* on_range) {
  const uint8_t opcode = reader_.u8(), low = opcode & 0x3f;
  switch (opcode & 0xc0) {
    case kAdvance:
      return advance(low, fde, on_range);
    case kOffset:
      save(low, {Saved::Kind::kAtOffset, factored(reader_.uleb()), {}});
      return true;
    case kRestore:
      restore(low);
      return true;
    default:
      break;
  }
  switch (opcode) {
    case kNop:
      return true;
    case kSetLocation:
      return advance_to(reader_.pointer(cie_.pointer_encoding), fde, on_range);
    case kAdvance1:
      return advance(reader_.u8(), fde, on_range);
    case kAdvance2:
      return advance(reader_.fixed<uint16_t>(), fde, on_range);
    case kAdvance4:
      return advance(reader_.fixed<uint32_t>(), fde, on_range);
    case kAdvance8:
      return advance(reader_.fixed<uint64_t>(), fde, on_range);
    case kRememberState:
      if (remembered_.size() >= kRememberedMax) return false;
      remembered_.push_back(state_);
      return true;
    case kRestoreState:
      return restore_state();
    case kArgumentsSize:
      reader_.uleb();
      return true;
    default:
      return step_extended(opcode);
  }
}

bool CfiProgram::step_extended(uint8_t opcode) {
  using Kind = Saved::Kind;
  if (opcode == kDefineCfaOffsetSigned) {
    define_cfa(state_.cfa_register, factored(static_cast<uint64_t>(reader_.sleb())));
    return true;
  }
  // Every other begins with a number.
  const uint64_t number = reader_.uleb();
  switch (opcode) {
    case kOffsetExtended:
      save(number, {Kind::kAtOffset, factored(reader_.uleb()), {}});
      break;
    case kOffsetExtendedSigned:
      save(number, {Kind::kAtOffset, factored(static_cast<uint64_t>(reader_.sleb())), {}});
      break;
    case kNegativeOffsetExtended:
      save(number, {Kind::kAtOffset, factored(0 - reader_.uleb()), {}});
      break;
    case kValueOffset:
      save(number, {Kind::kIsOffset, factored(reader_.uleb()), {}});
      break;
    case kValueOffsetSigned:
      save(number, {Kind::kIsOffset, factored(static_cast<uint64_t>(reader_.sleb())), {}});
      break;
    case kRestoreExtended:
      restore(number);
      break;
    case kUndefined:
      save(number, {Kind::kUndefined, 0, {}});
      break;
    case kSameValue:
      save(number, {Kind::kSame, 0, {}});
      break;
    case kRegister:
      save(number, {Kind::kRegister, static_cast<int64_t>(reader_.uleb()), {}});
      break;
    case kExpression:
      save(number, {Kind::kAtExpression, 0, reader_.take(reader_.uleb())});
      break;
    case kValueExpression:
      save(number, {Kind::kIsExpression, 0, reader_.take(reader_.uleb())});
      break;
    case kDefineCfa:
      define_cfa(number, static_cast<int64_t>(reader_.uleb()));
      break;
    case kDefineCfaSigned:
      define_cfa(number, factored(static_cast<uint64_t>(reader_.sleb())));
      break;
    case kDefineCfaRegister:
      define_cfa(number, state_.cfa_offset);
      break;
    case kDefineCfaOffset:
      define_cfa(state_.cfa_register, static_cast<int64_t>(number));
      break;
    case kDefineCfaExpression:
      state_.has_cfa = number > 0;
      state_.cfa_expression = reader_.take(number);
      break;
    default:
      return false;
  }
  return true;
}

bool CfiProgram::run_cie(const Cie& cie, FrameState& state) {
  const FrameState none;
  CfiProgram program(cie, none, cie.instructions);
  while (!program.reader_.at_end())
    if (!program.step(nullptr, nullptr) || program.reader_.failed()) return false;
  state = program.state_;
  return true;
}

bool CfiProgram::run_fde(const Cie& cie, const FrameState& initial, const Fde& fde,
                         const OnRange& on_range, uint64_t& reached) {
  CfiProgram program(cie, initial, fde.instructions);
  program.address_ = fde.start;
  bool sound = true;
  while (sound && !program.reader_.at_end() && program.address_ < fde.end)
    sound = program.step(&fde, &on_range) && !program.reader_.failed();
  if (sound) program.advance_to(fde.end, &fde, &on_range);
  reached = program.address_;
  return sound;
}

}  // namespace dwell::unwind
