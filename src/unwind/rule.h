// From the state of a frame, as call-frame instructions describe it, to the rule that the walker
// follows: 16 bytes, equal if and only if they mean the same. Called by the table compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "abi/unwind.h"
#include "unwind/cfi_program.h"

namespace dwell::unwind {

using Rule = dwell_unwind_rule;

// What a state says, as far as a rule can say it.
Rule to_rule(const FrameState& state, bool is_signal_frame);

bool equal(const Rule& a, const Rule& b);

// Distinct rules, numbered: 0 is "no unwind data", 1 stands for those that did not fit.
class RuleTable {
 public:
  static constexpr uint16_t kNoData = 0;
  static constexpr uint16_t kFull = 1;

  explicit RuleTable(size_t limit = DWELL_UNWIND_RULES_MAX);
  uint16_t number_of(const Rule& rule);
  const std::vector<Rule>& rules() const { return rules_; }
  uint64_t refused() const { return refused_; }  // asked for while the table was full

 private:
  struct Hash {
    size_t operator()(const Rule& rule) const;
  };
  struct Equal {
    bool operator()(const Rule& a, const Rule& b) const { return equal(a, b); }
  };
  size_t limit_;
  uint64_t refused_ = 0;
  std::vector<Rule> rules_;
  std::unordered_map<Rule, uint16_t, Hash, Equal> numbers_;
};

}  // namespace dwell::unwind
