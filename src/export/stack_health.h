// How far the user stacks of a recording can be trusted, and what would make them better: how each
// frame was found, why walks ended early, which code has no names; per binary, with the one remedy
// of each fault, and the flags of runtimes that did not write a perf map.
//
// Pure; called by the table, `dwell report --stacks-health` and the JSON document. Times are sums
// over rows, each counted once per line; a stack passes through several modules, so the times of
// modules do not add up.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.h"

namespace dwell {

// Distinct frames, and the off-CPU time of the stacks that hold at least one of them.
struct FramesShare {
  uint64_t frames = 0;
  uint64_t time_ns = 0;
};

struct ModuleHealth {
  uint32_t module = 0;  // into Profile::modules
  FramesShare all;
  FramesShare by_unwind_data;  // left for their caller, or known as a root, by unwind data
  FramesShare by_pointer;      // ... by the frame pointer
  FramesShare cut;             // where a walk ended that had not reached a root
  FramesShare unnamed;
  WalkEnd cut_end = WalkEnd::kNotWalked;  // why most of the cut time is cut
  std::string cut_remedy;                 // "" if nothing is cut, or nothing helps
  std::string unnamed_remedy;
};

struct WalkEndShare {
  uint64_t stacks = 0;
  uint64_t time_ns = 0;
};

// A process whose code is made at run time or interpreted, without names or frame pointers.
struct RuntimeHint {
  uint32_t process = 0;      // into Profile::processes
  std::string_view runtime;  // "Node.js"; "" if not known
  uint64_t unnamed_ns = 0;   // of stacks through such code without a perf map, or interpreted code
  uint64_t cut_ns = 0;       // of stacks that end in such code
  std::string remedy;        // the exact flags
};

struct StackHealth {
  bool has_walks = false;     // false: recorded by a dwell that did not keep how stacks were walked
  uint64_t user_time_ns = 0;  // of rows that have a user stack, whole, cut or lost
  uint64_t whole_ns = 0;
  uint64_t lost_ns = 0;  // a placeholder stands for the stack
  uint64_t unnamed_ns = 0;
  uint64_t by_pointer_ns = 0;                         // a step at least
  std::array<WalkEndShare, kWalkEndCount> ends = {};  // by WalkEnd
  std::vector<ModuleHealth> modules;                  // of user frames; most time first
  std::vector<RuntimeHint> hints;                     // most time first

  uint64_t cut_ns() const { return user_time_ns - whole_ns - lost_ns; }
};
StackHealth stack_health(const Profile& profile);

// Why a walk ended, in words for people: "no unwind data and no frame pointer".
const char* walk_end_text(WalkEnd end);

}  // namespace dwell
