// The stacks of a profile: the kernel's frames, Python's and the user's, named and put one behind
// the other, each stack once. Where frames are missing a placeholder stands. Used by
// build_profile.cc.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "abi/off_cpu.h"
#include "cli/recorded_stacks.h"
#include "profile/profile_builder.h"
#include "symbolize/symbolizer.h"

namespace dwell::cli {

class ProfileStacks {
 public:
  // All of them outlive it.
  ProfileStacks(const RecordedStacks& recorded, symbolize::Symbolizer& symbolizer,
                ProfileBuilder& builder)
      : recorded_(recorded), symbolizer_(symbolizer), builder_(builder) {}

  // The stack of a row, in the builder's table.
  uint32_t id_of(const dwell_row_key& key);
  uint32_t module_of(symbolize::ObjectId object);
  // Stacks in which Python's frames have not as many eval calls as the user's.
  size_t unmatched_python() const { return unmatched_python_.size(); }

 private:
  struct Side {
    bool complete = false;
    bool truncated = false;
    Walk walk;
  };
  struct PairHash {
    size_t operator()(const std::pair<uint64_t, uint64_t>& pair) const {
      return static_cast<size_t>((pair.first * 0x9e3779b97f4a7c15ull) ^ pair.second);
    }
  };
  using StackIds = std::unordered_map<std::pair<uint64_t, uint64_t>, uint32_t, PairHash>;

  uint32_t frame_of(symbolize::LocationId location);
  uint32_t add_frame(const symbolize::FrameInfo& info);
  bool is_unknown(uint32_t frame) const;
  Side append(uint64_t id, bool user, std::vector<uint32_t>& frames);
  Side append_with_python(uint64_t id, const LocatedStack& pair, std::vector<uint32_t>& frames);

  const RecordedStacks& recorded_;
  symbolize::Symbolizer& symbolizer_;
  ProfileBuilder& builder_;
  std::vector<uint32_t> frame_ids_;                // id + 1 by location, 0: not described yet
  StackIds stack_ids_;                             // by kernel and user stack
  StackIds new_thread_stack_ids_;                  // with a frame more
  std::unordered_set<uint64_t> unmatched_python_;  // pairs
};

}  // namespace dwell::cli
