#include "export/table_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "export/text_layout.h"
#include "export/wait_groups.h"
#include "export/words.h"

namespace dwell {
namespace {

constexpr size_t kNameColumnsMax = 40;    // of a process or a cause
constexpr size_t kModuleColumnsMax = 24;  // of the module beside a frame
constexpr size_t kAlignedNameMax = 48;    // longer names push their module to the right
constexpr size_t kFrameIndent = 7;

const char* view_words(View view) {
  switch (view) {
    case View::kBlocked:
      return "blocked time";
    case View::kRunQueue:
      return "time waiting for a CPU";
    case View::kOffCpu:
      break;
  }
  return "off-CPU time";
}

std::string wait_text(const Profile& profile, const WaitGroup& group) {
  const std::string& cause = profile.text(group.cause);
  const char* wait_class = wait_class_name(group.wait_class);
  if (cause.empty() || cause == wait_class) return wait_class;
  return fmt::format("{}, {}", clip(cause, kNameColumnsMax), wait_class);
}

std::string mean_text(const WaitGroup& group) {
  return group.count == 0 ? "-" : format_duration(group.total_ns / group.count);
}

uint64_t sum_of(const std::vector<WaitGroup>& groups, size_t first) {
  uint64_t sum = 0;
  for (size_t i = 0; i < std::min(first, groups.size()); ++i) sum += groups[i].time_ns;
  return sum;
}

// One line of a stack: a frame, and how often it follows itself (recursion).
struct StackLine {
  std::string name;
  std::string module;  // of user frames with a name of their own
  bool kernel = false;
};

StackLine stack_line(const Profile& profile, uint32_t index, size_t times, size_t width) {
  const Frame& frame = profile.frames[index];
  const std::string repeated =
      (frame.inlined ? " (inlined)" : "") + (times > 1 ? fmt::format(" (x {})", times) : "");
  StackLine line;
  line.kernel = frame.kind == FrameKind::kKernel;
  if (frame.kind == FrameKind::kUser && frame.function != 0)
    line.module = clip(module_text(profile, profile.modules[frame.module]), kModuleColumnsMax);
  const size_t room = width - kFrameIndent - 2 - repeated.size() -
                      (line.module.empty() ? 0 : kModuleColumnsMax + 2);
  line.name = clip(frame_text(profile, frame), room) + repeated;
  return line;
}

// The modules stand in a column of their own, unless a name is longer than most.
std::string format_stack(const std::vector<StackLine>& lines) {
  size_t name_columns = 0;
  for (const StackLine& line : lines)
    if (!line.module.empty() && line.name.size() <= kAlignedNameMax)
      name_columns = std::max(name_columns, line.name.size());
  std::string out;
  for (const StackLine& line : lines) {
    out +=
        fmt::format("{}{} {}", std::string(kFrameIndent, ' '), line.kernel ? 'k' : ' ', line.name);
    if (!line.module.empty()) {
      out.append(name_columns - std::min(name_columns, line.name.size()), ' ');
      out += "  " + line.module;
    }
    out += '\n';
  }
  return out;
}

// Lines of a stack, equal neighbours (recursion) joined; the middle of a deep one left out.
std::string stack_lines(const Profile& profile, const Stack& stack, const TableOptions& options) {
  std::vector<std::pair<uint32_t, size_t>> runs;  // frame, times in a row
  for (uint32_t frame : stack.frames) {
    if (!runs.empty() && runs.back().first == frame) {
      ++runs.back().second;
    } else {
      runs.emplace_back(frame, 1);
    }
  }
  const size_t shown = std::max<size_t>(options.frames, 2);
  const bool whole = runs.size() <= shown;
  const size_t leaf_side = whole ? runs.size() : shown * 2 / 3;
  const size_t root_side = whole ? 0 : shown - leaf_side;
  std::vector<StackLine> lines;
  for (size_t i = 0; i < leaf_side; ++i)
    lines.push_back(stack_line(profile, runs[i].first, runs[i].second, options.width));
  if (!whole)
    lines.push_back({fmt::format("... {} more", plural(runs.size() - shown, "frame")), "", false});
  for (size_t i = runs.size() - root_side; i < runs.size(); ++i)
    lines.push_back(stack_line(profile, runs[i].first, runs[i].second, options.width));
  if (stack.frames.empty()) lines.push_back({std::string(kNoStack), "", false});
  if (lacks_truncated_root(profile, stack))
    lines.push_back({std::string(kTruncatedRoot), "", false});
  return format_stack(lines);
}

std::string wait_entry(const Profile& profile, const TableOptions& options, size_t rank,
                       const WaitGroup& group, uint64_t alive_ns) {
  std::string who = process_text(profile, group.process, kNameColumnsMax);
  if (group.threads > 1) who += fmt::format(" x {}", plural(group.threads, "thread"));
  std::string out =
      fmt::format("\n{:>4}. {:>10} {:>8}  {}: {}\n", rank, format_duration(group.time_ns),
                  percent(group.time_ns, alive_ns), who, wait_text(profile, group));
  out +=
      fmt::format("{}{}, mean {}, max {}", std::string(kFrameIndent - 1, ' '),
                  plural(group.count, "interval"), mean_text(group), format_duration(group.max_ns));
  if (options.view == View::kOffCpu && group.run_queue_ns > 0 &&
      group.run_queue_ns < group.total_ns)
    out += fmt::format("; {} of it waiting for a CPU", format_duration(group.run_queue_ns));
  out += '\n';
  return out + stack_lines(profile, profile.stacks[group.stack], options);
}

}  // namespace

std::string process_text(const Profile& profile, uint32_t process, size_t columns) {
  const Process& p = profile.processes[process];
  const std::string& name = profile.text(p.comm);
  const std::string id = p.pid == 0 ? "" : fmt::format(" [{}]", p.pid);  // 0: no real process
  return clip(name.empty() ? "?" : name, columns - std::min(columns, id.size())) + id;
}

std::string heading(const TableOptions& options, const std::string& text) {
  return options.colour ? "\x1b[1m" + text + "\x1b[0m" : text;
}

std::string causes_section(const Profile& profile, const TableOptions& options, uint64_t alive_ns) {
  const std::vector<WaitGroup> groups = group_by_cause(profile, options.view);
  if (groups.empty()) return "";
  const auto line = [](const std::string& name, const std::string& time, const std::string& share,
                       const std::string& count, const std::string& mean, const std::string& max) {
    return fmt::format("{}{:>11}{:>9}{:>13}{:>11}{:>11}", pad(name, 42), time, share, count, mean,
                       max);
  };
  std::string out =
      "\n" +
      heading(options, line("Waits by cause", "total", "of wall", "intervals", "mean", "max")) +
      "\n";
  for (size_t i = 0; i < std::min(options.rows, groups.size()); ++i) {
    const WaitGroup& group = groups[i];
    out += line(wait_text(profile, group), format_duration(group.time_ns),
                percent(group.time_ns, alive_ns), grouped(group.count), mean_text(group),
                format_duration(group.max_ns)) +
           "\n";
  }
  if (groups.size() > options.rows)
    out +=
        fmt::format("... and {} with {}\n", plural(groups.size() - options.rows, "more cause"),
                    format_duration(sum_of(groups, groups.size()) - sum_of(groups, options.rows)));
  return out;
}

std::string waits_section(const Profile& profile, const TableOptions& options, uint64_t alive_ns) {
  const std::vector<WaitGroup> groups = group_by_wait(profile, options.view);
  if (groups.empty())
    return fmt::format("\nNo {} was recorded for this selection.\n", view_words(options.view));
  const size_t shown = std::min(options.rows, groups.size());
  std::string out =
      "\n" +
      heading(options, fmt::format("Longest waits: {} of {}, {} of the {} (share is of wall time; "
                                   "k: kernel frame)",
                                   shown, grouped(groups.size()),
                                   percent(sum_of(groups, shown), sum_of(groups, groups.size())),
                                   view_words(options.view))) +
      "\n";
  for (size_t i = 0; i < shown; ++i)
    out += wait_entry(profile, options, i + 1, groups[i], alive_ns);
  return out;
}

}  // namespace dwell
