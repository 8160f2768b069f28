#include "export/health_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "export/stack_health.h"
#include "export/table_waits.h"
#include "export/text_layout.h"
#include "export/words.h"

namespace dwell {
namespace {

constexpr size_t kModuleColumns = 24;
constexpr size_t kAdviceMax = 3;  // lines of the short block
// Remedies are told for faults of more than one part in so many of the time.
constexpr uint64_t kShortPart = 200;
constexpr uint64_t kWholePart = 2000;

std::string module_name(const Profile& profile, uint32_t module) {
  const std::string_view name = module_text(profile, profile.modules[module]);
  return std::string(name.empty() ? "[unknown]" : name.substr(0, kWrapBytesMax / 2));
}

std::string hint_text(const Profile& profile, const RuntimeHint& hint) {
  std::string what;
  if (hint.unnamed_ns > 0)
    what = fmt::format("{} through code of its runtime that has no name",
                       format_duration(hint.unnamed_ns));
  if (hint.cut_ns > 0)
    what += fmt::format("{}{} cut in such code", what.empty() ? "" : ", ",
                        format_duration(hint.cut_ns));
  const std::string who = process_text(profile, hint.process, kModuleColumns);
  return fmt::format("{}{}: {}: {}", who,
                     hint.runtime.empty() ? "" : fmt::format(" ({})", hint.runtime), what,
                     hint.remedy);
}

std::string cut_text(const Profile& profile, const ModuleHealth& module) {
  return fmt::format("{}: {} cut there, {}{}{}", module_name(profile, module.module),
                     format_duration(module.cut.time_ns), walk_end_text(module.cut_end),
                     module.cut_remedy.empty() ? "" : ": ", module.cut_remedy);
}

std::string unnamed_text(const Profile& profile, const ModuleHealth& module) {
  return fmt::format("{}: {} without a name: {}", module_name(profile, module.module),
                     plural(module.unnamed.frames, "frame"), module.unnamed_remedy);
}

// Why stacks were cut, most time first: "a page of the stack not in memory 0.1 %".
std::string cut_reasons(const StackHealth& health) {
  std::vector<std::pair<uint64_t, WalkEnd>> ends;
  for (size_t i = 0; i < kWalkEndCount; ++i) {
    const auto end = static_cast<WalkEnd>(i);
    if (end == WalkEnd::kNotWalked || is_root(end) || health.ends[i].time_ns == 0) continue;
    ends.emplace_back(health.ends[i].time_ns, end);
  }
  std::ranges::sort(ends, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string out;
  for (const auto& [time_ns, end] : ends)
    out += fmt::format("{}{} {}", out.empty() ? "" : "; ", walk_end_text(end),
                       percent(time_ns, health.user_time_ns));
  return out.empty() ? "" : " (" + out + ")";
}

std::string summary_line(const StackHealth& health, const TableOptions& options) {
  const uint64_t all = health.user_time_ns;
  std::string text =
      fmt::format("{} of their {} whole, {} cut{}", percent(health.whole_ns, all),
                  format_duration(all), percent(health.cut_ns(), all), cut_reasons(health));
  if (health.lost_ns > 0) text += fmt::format(", {} lost", percent(health.lost_ns, all));
  if (health.has_walks)
    text += fmt::format("; {} with steps by frame pointer", percent(health.by_pointer_ns, all));
  text += fmt::format("; {} with frames that have no name", percent(health.unnamed_ns, all));
  return wrap("User stacks: ", text, 4, options.width);
}

bool is_worth_telling(const StackHealth& health, uint64_t time_ns, uint64_t part) {
  return time_ns > health.user_time_ns / part;
}

std::string reasons_table(const StackHealth& health, const TableOptions& options) {
  std::string out =
      "\n" +
      heading(options, fmt::format("{}{:>11}{:>11}{:>9}", pad("Where the walks ended", 48),
                                   "stacks", "off-CPU", "share")) +
      "\n";
  const auto line = [&](WalkEnd end, const char* text) {
    const WalkEndShare& share = health.ends[static_cast<size_t>(end)];
    if (share.stacks == 0) return std::string();
    return fmt::format("{}{:>11}{:>11}{:>9}\n", pad(text, 48), grouped(share.stacks),
                       format_duration(share.time_ns), percent(share.time_ns, health.user_time_ns));
  };
  out += line(WalkEnd::kRoot, "root: unwind data without a caller");
  out += line(WalkEnd::kRootZero, "root: a return address of 0");
  out += line(WalkEnd::kRootPointer, "root: a frame pointer of 0");
  for (auto end = WalkEnd::kTruncated; end <= WalkEnd::kCompat;
       end = static_cast<WalkEnd>(static_cast<int>(end) + 1))
    out += line(end, walk_end_text(end));
  return out + line(WalkEnd::kNotWalked, "lost, or recorded by an older dwell");
}

std::string share_cell(const FramesShare& share, const ModuleHealth& module) {
  if (share.frames == 0) return fmt::format("{:>14}", "-");
  return fmt::format("{:>6}{:>8}", grouped(share.frames),
                     percent(share.time_ns, module.all.time_ns));
}

std::string modules_table(const Profile& profile, const StackHealth& health,
                          const TableOptions& options) {
  std::string out =
      "\n" +
      heading(options,
              fmt::format("{}{:>7}{:>11}{:>14}{:>14}{:>14}{:>14}", pad("Binary", kModuleColumns),
                          "frames", "off-CPU", "unwind data", "frame pointer", "cut", "no name")) +
      "\n";
  const size_t shown = std::min(options.rows, health.modules.size());
  for (size_t i = 0; i < shown; ++i) {
    const ModuleHealth& module = health.modules[i];
    out += fmt::format(
        "{}{:>7}{:>11}{}{}{}{}\n", pad(module_name(profile, module.module), kModuleColumns),
        grouped(module.all.frames), format_duration(module.all.time_ns),
        share_cell(module.by_unwind_data, module), share_cell(module.by_pointer, module),
        share_cell(module.cut, module), share_cell(module.unnamed, module));
  }
  if (health.modules.size() > shown)
    out += fmt::format("... and {}\n", plural(health.modules.size() - shown, "more module"));
  return out;
}

// For the faults of the modules shown, and of all runtimes.
std::string remedies(const Profile& profile, const StackHealth& health,
                     const TableOptions& options) {
  std::string out;
  for (const RuntimeHint& hint : health.hints)
    if (is_worth_telling(health, hint.unnamed_ns + hint.cut_ns, kWholePart))
      out += wrap("  ", hint_text(profile, hint), 4, options.width);
  for (size_t i = 0; i < std::min(options.rows, health.modules.size()); ++i) {
    const ModuleHealth& module = health.modules[i];
    if (!module.cut_remedy.empty() && is_worth_telling(health, module.cut.time_ns, kWholePart))
      out += wrap("  ", cut_text(profile, module), 4, options.width);
    if (!module.unnamed_remedy.empty() &&
        is_worth_telling(health, module.unnamed.time_ns, kWholePart))
      out += wrap("  ", unnamed_text(profile, module), 4, options.width);
  }
  if (out.empty()) return "";
  return "\n" + heading(options, "What would help") + "\n" + out;
}

}  // namespace

std::string health_section(const Profile& profile, const TableOptions& options) {
  const StackHealth health = stack_health(profile);
  if (health.user_time_ns == 0) return "";
  std::string out = summary_line(health, options);
  std::vector<std::string> advice;
  for (const RuntimeHint& hint : health.hints)
    if (is_worth_telling(health, hint.unnamed_ns + hint.cut_ns, kShortPart))
      advice.push_back(hint_text(profile, hint));
  for (const ModuleHealth& module : health.modules)
    if (!module.cut_remedy.empty() && is_worth_telling(health, module.cut.time_ns, kShortPart))
      advice.push_back(cut_text(profile, module));
  for (size_t i = 0; i < std::min(kAdviceMax, advice.size()); ++i)
    out += wrap("  ", advice[i], 4, options.width);
  if (advice.size() > kAdviceMax)
    out += fmt::format("  ... and {}: dwell report FILE --stacks-health\n",
                       plural(advice.size() - kAdviceMax, "more remedy"));
  return out;
}

std::string stacks_health(const Profile& profile, const TableOptions& wanted) {
  TableOptions options = wanted;
  options.width = std::max(options.width, kWidthMin);
  const StackHealth health = stack_health(profile);
  if (health.user_time_ns == 0) return "No user stack was recorded for this selection.\n";
  return summary_line(health, options) + reasons_table(health, options) +
         modules_table(profile, health, options) + remedies(profile, health, options);
}

}  // namespace dwell
