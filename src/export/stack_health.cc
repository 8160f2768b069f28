#include "export/stack_health.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "export/runtimes.h"
#include "export/words.h"

namespace dwell {
namespace {

enum Line { kAll, kByUnwindData, kByPointer, kCut, kUnnamed, kLineCount };

constexpr const char* kBuildWithTables =
    "build it with -fasynchronous-unwind-tables (the compilers' default) or "
    "-fno-omit-frame-pointer";

bool is_made_at_run_time(const Module& module) {
  return module.kind == ModuleKind::kAnonymous || module.kind == ModuleKind::kJit;
}

// In place of a user stack that was taken and did not arrive.
bool is_lost_stack(const Profile& profile, const Frame& frame) {
  const std::string_view text = profile.text(frame.function);
  return frame.kind == FrameKind::kPlaceholder &&
         (text.starts_with("[user stack ") || text.starts_with("[overflow:"));
}

std::string cut_remedy(WalkEnd end, const Module& module) {
  switch (end) {
    case WalkEnd::kBadPointer:
      // What made the code says how: see the hints.
      return is_made_at_run_time(module) ? "" : kBuildWithTables;
    case WalkEnd::kNoTables:
      return "none if the process had just begun; else --unwind-rows above 0";
    case WalkEnd::kRulesFull:
      return "record fewer processes";
    case WalkEnd::kNoMapping:
      return "none if the code was mapped a moment before; else its callee keeps no frame pointer";
    case WalkEnd::kCompat:
      return "run the 64-bit build of the program";
    default:
      return "";
  }
}

std::string unnamed_remedy(const Profile& profile, const Module& module,
                           const UnresolvedModule* unresolved) {
  const bool is_file = module.kind == ModuleKind::kFile;
  if (is_file && profile.text(module.path).starts_with('/'))
    return fmt::format(
        "install its -dbgsym package (`find-dbgsym-packages {}` of debian-goodies tells which), or "
        "build it without stripping",
        profile.text(module.path));
  if (module.kind == ModuleKind::kAnonymous) return "";  // see the hints
  return unresolved != nullptr ? unresolved->remedy : "";
}

// What one stack says, looked at once however many rows have it.
struct StackFacts {
  uint64_t time_ns = 0;
  bool unnamed_code = false;       // made at run time, without a perf map
  bool interpreted = false;        // the interpreter's frames stand for those of the program
  bool names_interpreted = false;  // ... and here not: the runtime was started with its remedy
  bool cut_in_code = false;        // the walk ended there
  const Runtime* runtime = nullptr;
};

class HealthCheck {
 public:
  explicit HealthCheck(const Profile& profile)
      : profile_(profile),
        facts_(profile.stacks.size()),
        modules_(profile.modules.size()),
        seen_(profile.frames.size()) {}

  StackHealth run() && {
    for (const Row& row : profile_.rows) facts_[row.stack].time_ns += row.total_ns();
    for (uint32_t i = 0; i < facts_.size(); ++i) look_at(profile_.stacks[i], facts_[i]);
    add_modules();
    add_hints();
    return std::move(health_);
  }

 private:
  struct Tally {
    std::array<FramesShare, kLineCount> lines = {};
    std::array<uint32_t, kLineCount> last_stack = {};  // counted for this one, from 1
    std::map<WalkEnd, uint64_t> cut_ns;
  };

  // Several frames of one stack in one module are one time.
  void add(Line line, uint32_t frame, uint64_t time_ns) {
    Tally& tally = modules_[profile_.frames[frame].module];
    FramesShare& share = tally.lines[line];
    const uint8_t bit = static_cast<uint8_t>(1u << line);
    if ((seen_[frame] & bit) == 0) ++share.frames;
    seen_[frame] |= bit;
    if (std::exchange(tally.last_stack[line], stack_number_) != stack_number_)
      share.time_ns += time_ns;
  }

  struct Cut {
    size_t frame = SIZE_MAX;  // among the user frames; SIZE_MAX: none
    WalkEnd end = WalkEnd::kNotWalked;
  };
  // At which frame a walk went wrong, and why.
  Cut cut_of(const Walk& walk, const std::vector<uint32_t>& users) const {
    const size_t last = users.size() - 1;
    if (walk.end == WalkEnd::kNotWalked || is_root(walk.end) || walk.end == WalkEnd::kTruncated)
      return {};
    if (walk.end == WalkEnd::kBadIp && walk.followed_pointer(last))
      return {last, WalkEnd::kBadPointer};
    return {last, walk.end};
  }

  void add_names(uint32_t index, StackFacts& facts) {
    const Frame& frame = profile_.frames[index];
    const Module& module = profile_.modules[frame.module];
    add(kAll, index, facts.time_ns);
    if (frame.how == Resolution::kNone) {
      add(kUnnamed, index, facts.time_ns);
      unnamed_ = true;
      facts.unnamed_code |= module.kind == ModuleKind::kAnonymous;
    }
    if (facts.runtime == nullptr || facts.runtime->interpreter.empty()) return;
    const std::string& function = profile_.text(frame.function);
    facts.interpreted |= function == facts.runtime->interpreter;
    facts.names_interpreted |= frame.how == Resolution::kPerfMap &&
                               function.starts_with(facts.runtime->interpreted_prefix);
  }

  const Runtime* runtime_of_stack(const std::vector<uint32_t>& users) const {
    for (const uint32_t frame : users) {
      const Module& module = profile_.modules[profile_.frames[frame].module];
      if (const Runtime* runtime = runtime_of(profile_.text(module.path))) return runtime;
    }
    return nullptr;
  }

  void add_steps(const Walk& walk, const std::vector<uint32_t>& users, StackFacts& facts) {
    const Cut cut = cut_of(walk, users);
    const size_t stepped = is_root(walk.end) ? users.size() : users.size() - 1;
    for (size_t i = 0; i < std::min(stepped, cut.frame); ++i) {
      const bool pointer =
          walk.followed_pointer(i) || (walk.end == WalkEnd::kRootPointer && i + 1 == users.size());
      add(pointer ? kByPointer : kByUnwindData, users[i], facts.time_ns);
      by_pointer_ |= pointer;
    }
    if (cut.frame == SIZE_MAX) return;
    const uint32_t module = profile_.frames[users[cut.frame]].module;
    add(kCut, users[cut.frame], facts.time_ns);
    modules_[module].cut_ns[cut.end] += facts.time_ns;
    facts.cut_in_code =
        cut.end == WalkEnd::kBadPointer && is_made_at_run_time(profile_.modules[module]);
  }

  void look_at(const Stack& stack, StackFacts& facts) {
    ++stack_number_;
    unnamed_ = by_pointer_ = false;
    std::vector<uint32_t> users;
    for (const uint32_t frame : stack.frames)
      if (is_walked(profile_.frames[frame])) users.push_back(frame);
    facts.runtime = runtime_of_stack(users);
    for (const uint32_t frame : users) add_names(frame, facts);
    if (!users.empty() && stack.walk.end != WalkEnd::kNotWalked)
      add_steps(stack.walk, users, facts);
    add_sums(stack, facts, users.empty());
  }

  void add_sums(const Stack& stack, const StackFacts& facts, bool no_user_frames) {
    const bool lost = no_user_frames && !stack.frames.empty() &&
                      is_lost_stack(profile_, profile_.frames[stack.frames.back()]);
    if (no_user_frames && !lost) return;
    const WalkEnd end = stack.walk.end;
    health_.user_time_ns += facts.time_ns;
    if (lost) health_.lost_ns += facts.time_ns;
    if (stack.user_complete && !lost) health_.whole_ns += facts.time_ns;
    if (unnamed_) health_.unnamed_ns += facts.time_ns;
    if (by_pointer_) health_.by_pointer_ns += facts.time_ns;
    if (end != WalkEnd::kNotWalked) health_.has_walks = true;
    WalkEndShare& share = health_.ends[static_cast<size_t>(end)];
    ++share.stacks;
    share.time_ns += facts.time_ns;
  }

  void add_modules() {
    std::unordered_map<uint32_t, const UnresolvedModule*> unresolved;
    for (const UnresolvedModule& u : profile_.unresolved) unresolved.try_emplace(u.module, &u);
    for (uint32_t i = 0; i < modules_.size(); ++i) {
      const Tally& tally = modules_[i];
      if (tally.lines[kAll].frames == 0) continue;
      const Module& module = profile_.modules[i];
      ModuleHealth found{.module = i,
                         .all = tally.lines[kAll],
                         .by_unwind_data = tally.lines[kByUnwindData],
                         .by_pointer = tally.lines[kByPointer],
                         .cut = tally.lines[kCut],
                         .unnamed = tally.lines[kUnnamed],
                         .cut_remedy = "",
                         .unnamed_remedy = ""};
      const auto worst = std::ranges::max_element(tally.cut_ns, {},
                                                  [](const auto& entry) { return entry.second; });
      if (worst != tally.cut_ns.end()) {
        found.cut_end = worst->first;
        found.cut_remedy = cut_remedy(found.cut_end, module);
      }
      const auto excuse = unresolved.find(i);
      if (found.unnamed.frames > 0)
        found.unnamed_remedy =
            unnamed_remedy(profile_, module, excuse == unresolved.end() ? nullptr : excuse->second);
      health_.modules.push_back(std::move(found));
    }
    std::ranges::sort(health_.modules, [](const ModuleHealth& a, const ModuleHealth& b) {
      return std::tuple(b.all.time_ns, a.module) < std::tuple(a.all.time_ns, b.module);
    });
  }

  struct ProcessFacts {
    RuntimeFaults faults;
    uint64_t unnamed_ns = 0;
    uint64_t interpreted_ns = 0;  // of stacks that are not unnamed already
    uint64_t cut_ns = 0;
    bool names_interpreted = false;
    const Runtime* runtime = nullptr;
  };

  void add_hints() {
    std::map<uint32_t, ProcessFacts> processes;
    for (const Row& row : profile_.rows) {
      const StackFacts& facts = facts_[row.stack];
      ProcessFacts& sum = processes[profile_.threads[row.thread].process];
      sum.faults.lacks_map |= facts.unnamed_code;
      sum.names_interpreted |= facts.names_interpreted;
      sum.faults.lacks_pointers |= facts.cut_in_code;
      if (facts.unnamed_code)
        sum.unnamed_ns += row.total_ns();
      else if (facts.interpreted)
        sum.interpreted_ns += row.total_ns();
      if (facts.cut_in_code) sum.cut_ns += row.total_ns();
      if (sum.runtime == nullptr) sum.runtime = facts.runtime;
    }
    for (auto& [process, sum] : processes) {
      // What ran before the remedy took hold, at a runtime's own start, is no reason to ask for it.
      sum.faults.interprets = sum.interpreted_ns > 0 && !sum.names_interpreted;
      if (sum.faults.interprets) sum.unnamed_ns += sum.interpreted_ns;
      if (sum.unnamed_ns == 0 && sum.cut_ns == 0) continue;
      const Runtime* runtime =
          sum.runtime != nullptr
              ? sum.runtime
              : runtime_of(profile_.text(profile_.processes[process].executable));
      std::string remedy = runtime_remedy(runtime, sum.faults);
      if (remedy.empty()) continue;
      health_.hints.push_back({process, runtime != nullptr ? runtime->name : std::string_view(),
                               sum.unnamed_ns, sum.cut_ns, std::move(remedy)});
    }
    std::ranges::sort(health_.hints, [](const RuntimeHint& a, const RuntimeHint& b) {
      return std::tuple(b.unnamed_ns + b.cut_ns, a.process) <
             std::tuple(a.unnamed_ns + a.cut_ns, b.process);
    });
  }

  const Profile& profile_;
  std::vector<StackFacts> facts_;
  std::vector<Tally> modules_;
  std::vector<uint8_t> seen_;  // per frame: a bit for each line that has counted it
  uint32_t stack_number_ = 0;
  bool unnamed_ = false;  // of the stack that is looked at
  bool by_pointer_ = false;
  StackHealth health_;
};

}  // namespace

StackHealth stack_health(const Profile& profile) { return HealthCheck(profile).run(); }

const char* walk_end_text(WalkEnd end) {
  switch (end) {
    case WalkEnd::kNotWalked:
      return "it is not known how it was walked";
    case WalkEnd::kRoot:
    case WalkEnd::kRootZero:
    case WalkEnd::kRootPointer:
      return "whole";
    case WalkEnd::kTruncated:
      return "deeper than 127 frames";
    case WalkEnd::kNoTables:
      return "no unwind tables yet";
    case WalkEnd::kNoMapping:
      return "an address in no mapping";
    case WalkEnd::kBadPointer:
      return "no unwind data and no frame pointer";
    case WalkEnd::kUnsupported:
      return "unwind data of a rare kind";
    case WalkEnd::kRulesFull:
      return "the table of rules was full";
    case WalkEnd::kRegisterLost:
      return "a register that is not known";
    case WalkEnd::kFault:
      return "a page of the stack not in memory";
    case WalkEnd::kBadStack:
      return "a damaged stack";
    case WalkEnd::kBadIp:
      return "an address that no code has";
    case WalkEnd::kCompat:
      return "32-bit code";
  }
  return "unknown";
}

}  // namespace dwell
