#include "unwind/rule.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

namespace dwell::unwind {
namespace {

enum Operation : uint8_t {
  kDeref = 0x06,
  kAnd = 0x1a,
  kPlus = 0x22,
  kPlusConstant = 0x23,
  kShiftLeft = 0x24,
  kAtLeast = 0x2a,
  kLiteral0 = 0x30,
  kBaseRegister0 = 0x70,
};
constexpr uint8_t kRegisters = 32;
constexpr uint8_t kInstructionPointer = 16;  // its DWARF number
constexpr int64_t kSignalCfaOffset = 160;    // of rsp in the signal frame of x86-64 Linux
constexpr int64_t kReturnAtCfa = -8;

template <typename To>
bool fits(int64_t value) {
  return value >= std::numeric_limits<To>::min() && value <= std::numeric_limits<To>::max();
}

struct Based {
  uint8_t number = 0;
  int64_t offset = 0;
};

// DW_OP_bregN offset
std::optional<Based> read_based(CfiReader& reader) {
  const uint8_t operation = reader.u8();
  const uint8_t number = static_cast<uint8_t>(operation - kBaseRegister0);
  const int64_t offset = reader.sleb();
  if (reader.failed() || number >= kRegisters) return std::nullopt;
  return Based{number, offset};
}

// What linkers write for a PLT: rsp + 8 + ((rip & 15) >= threshold) * 8.
std::optional<uint8_t> plt_threshold(std::string_view expression) {
  CfiReader reader(expression, 0);
  const auto stack = read_based(reader), ip = read_based(reader);
  if (!stack || stack->number != DWELL_REGISTER_RSP || stack->offset != 8) return std::nullopt;
  if (!ip || ip->number != kInstructionPointer || ip->offset != 0) return std::nullopt;
  const std::string_view rest = reader.take(reader.remaining());
  if (rest.size() != 7 || rest[2] < char{kLiteral0} || rest[2] > char{kLiteral0 + 15})
    return std::nullopt;
  const uint8_t threshold = static_cast<uint8_t>(rest[2] - kLiteral0);
  const uint8_t wanted[] = {kLiteral0 + 15, kAnd,          static_cast<uint8_t>(rest[2]),
                            kAtLeast,       kLiteral0 + 3, kShiftLeft,
                            kPlus};
  if (std::memcmp(rest.data(), wanted, sizeof wanted) != 0) return std::nullopt;
  return threshold;
}

bool set_cfa_memory(CfiReader& reader, const Based& based, Rule& rule) {
  int64_t add = 0;
  while (!reader.at_end()) {
    if (reader.u8() != kPlusConstant) return false;
    const uint64_t more = reader.uleb();
    if (reader.failed() || more > INT16_MAX) return false;
    add += static_cast<int64_t>(more);
  }
  if (!fits<int16_t>(add)) return false;
  rule.cfa_kind = DWELL_CFA_MEMORY;
  rule.cfa_register = based.number;
  rule.cfa_offset = static_cast<int32_t>(based.offset);
  rule.cfa_add = static_cast<int16_t>(add);
  return true;
}

bool set_cfa_expression(std::string_view expression, Rule& rule) {
  if (const auto threshold = plt_threshold(expression)) {
    rule.cfa_kind = DWELL_CFA_PLT;
    rule.cfa_register = DWELL_REGISTER_RSP;
    rule.cfa_offset = 8;
    rule.cfa_add = *threshold;
    return true;
  }
  CfiReader reader(expression, 0);
  const auto based = read_based(reader);
  if (!based || based->number >= DWELL_REGISTER_COUNT || !fits<int32_t>(based->offset))
    return false;
  if (reader.at_end()) {
    rule.cfa_kind = DWELL_CFA_REGISTER;
    rule.cfa_register = based->number;
    rule.cfa_offset = static_cast<int32_t>(based->offset);
    return true;
  }
  return reader.u8() == kDeref && set_cfa_memory(reader, *based, rule);
}

bool set_cfa(const FrameState& state, Rule& rule) {
  if (!state.has_cfa) return false;
  if (!state.cfa_expression.empty()) return set_cfa_expression(state.cfa_expression, rule);
  if (state.cfa_register >= DWELL_REGISTER_COUNT || !fits<int32_t>(state.cfa_offset)) return false;
  rule.cfa_kind = DWELL_CFA_REGISTER;
  rule.cfa_register = static_cast<uint8_t>(state.cfa_register);
  rule.cfa_offset = static_cast<int32_t>(state.cfa_offset);
  return true;
}

bool set_return_address(const Saved& saved, Rule& rule) {
  rule.return_register = DWELL_RETURN_AT_CFA;
  if (saved.kind == Saved::Kind::kAtOffset) return saved.value == kReturnAtCfa;
  if (saved.kind != Saved::Kind::kRegister || saved.value < 0 ||
      saved.value >= DWELL_REGISTER_COUNT)
    return false;
  rule.return_register = static_cast<uint8_t>(saved.value);
  return true;
}

struct Place {
  dwell_saved_kind kind = DWELL_SAVED_LOST;
  int16_t offset = 0;
};

Place place_of(const Saved& saved) {
  switch (saved.kind) {
    case Saved::Kind::kUnspecified:  // the callee saves it if it uses it
    case Saved::Kind::kSame:
      return {DWELL_SAVED_SAME, 0};
    case Saved::Kind::kAtOffset:
      if (!fits<int16_t>(saved.value)) return {};
      return {DWELL_SAVED_AT_CFA, static_cast<int16_t>(saved.value)};
    case Saved::Kind::kAtExpression: {
      CfiReader reader(saved.expression, 0);
      const auto based = read_based(reader);
      if (!based || !reader.at_end() || based->number != DWELL_REGISTER_RBP ||
          !fits<int16_t>(based->offset))
        return {};
      return {DWELL_SAVED_AT_FRAME, static_cast<int16_t>(based->offset)};
    }
    default:
      return {};
  }
}

// The restorer that the kernel returns to from a signal handler: rsp is at the signal frame.
bool is_signal_frame_layout(const Rule& rule) {
  return rule.cfa_kind == DWELL_CFA_MEMORY && rule.cfa_register == DWELL_REGISTER_RSP &&
         rule.cfa_offset == kSignalCfaOffset && rule.cfa_add == 0;
}

Rule only(dwell_cfa_kind kind) {
  Rule rule = {};
  rule.cfa_kind = kind;
  rule.return_register = DWELL_RETURN_AT_CFA;
  return rule;
}

}  // namespace

Rule to_rule(const FrameState& state, bool is_signal_frame) {
  if (state.return_address.kind == Saved::Kind::kUndefined) return only(DWELL_CFA_ROOT);
  Rule rule = {};
  if (!set_cfa(state, rule)) return only(DWELL_CFA_UNSUPPORTED);
  if (is_signal_frame && is_signal_frame_layout(rule)) return only(DWELL_CFA_SIGNAL);
  if (!set_return_address(state.return_address, rule)) return only(DWELL_CFA_UNSUPPORTED);
  if (is_signal_frame) rule.flags = DWELL_RULE_EXACT_IP;
  const Place frame = place_of(state.rbp), rbx = place_of(state.rbx);
  rule.frame_kind = frame.kind;
  rule.frame_offset = frame.offset;
  rule.rbx_kind = rbx.kind;
  rule.rbx_offset = rbx.offset;
  return rule;
}

bool equal(const Rule& a, const Rule& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

size_t RuleTable::Hash::operator()(const Rule& rule) const {
  uint64_t words[2];
  static_assert(sizeof words == sizeof rule);
  std::memcpy(words, &rule, sizeof words);
  const uint64_t hash = (words[0] ^ words[1] * 0xc2b2ae3d27d4eb4full) * 0x9e3779b97f4a7c15ull;
  return hash ^ hash >> 31;
}

RuleTable::RuleTable(size_t limit)
    : limit_(std::min<size_t>(limit, DWELL_UNWIND_RULES_MAX)),
      rules_{only(DWELL_CFA_NONE), only(DWELL_CFA_RULES_FULL)} {
  for (uint16_t i = 0; i < rules_.size(); ++i) numbers_.emplace(rules_[i], i);
}

uint16_t RuleTable::number_of(const Rule& rule) {
  const auto known = numbers_.find(rule);
  if (known != numbers_.end()) return known->second;
  if (rules_.size() >= limit_) {
    ++refused_;
    return kFull;
  }
  const auto number = static_cast<uint16_t>(rules_.size());
  rules_.push_back(rule);
  numbers_.emplace(rule, number);
  return number;
}

}  // namespace dwell::unwind
