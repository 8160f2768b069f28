#include "profile/select.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/text.h"
#include "profile/profile_builder.h"

namespace dwell {
namespace {

constexpr uint32_t kNotCopied = std::numeric_limits<uint32_t>::max();
constexpr size_t kNamesInErrorMax = 10;
constexpr size_t kNameBytesInErrorMax = 40;

bool matches(const std::vector<std::string>& wanted, std::string_view name, uint32_t id) {
  return wanted.empty() || std::ranges::any_of(wanted, [&](const std::string& text) {
           return text == name || (id != 0 && text == std::to_string(id));
         });
}

bool matches(const std::vector<std::string>& wanted, std::string_view name) {
  return matches(wanted, name, 0);
}

// One entry per element of a table: (name, id) of everything that an option can choose.
using Choices = std::vector<std::pair<std::string_view, uint32_t>>;

// Whether each wanted text names something.
Status check_choices(const char* option, const std::vector<std::string>& wanted,
                     const Choices& choices) {
  for (const std::string& text : wanted) {
    const bool known = std::ranges::any_of(
        choices, [&](const auto& choice) { return matches({text}, choice.first, choice.second); });
    if (known) continue;
    std::set<std::string> names;
    for (const auto& [name, id] : choices) {
      if (names.size() == kNamesInErrorMax) break;
      names.insert(printable(name.substr(0, kNameBytesInErrorMax)));
    }
    return usage_error(fmt::format("--{} {}: no such {} in this recording; it has {}{}", option,
                                   printable(text), option, fmt::join(names, ", "),
                                   choices.size() > kNamesInErrorMax ? ", ..." : ""));
  }
  return {};
}

Status check(const Profile& profile, const Selection& selection) {
  Choices processes, threads, classes, causes;
  for (const Process& process : profile.processes)
    processes.emplace_back(profile.text(process.comm), process.pid);
  for (const Thread& thread : profile.threads)
    threads.emplace_back(profile.text(thread.comm), thread.tid);
  for (int i = 0; i < kWaitClassCount; ++i)
    classes.emplace_back(wait_class_name(static_cast<WaitClass>(i)), 0);
  std::set<StringId> cause_ids;
  for (const Row& row : profile.rows) cause_ids.insert(row.cause);
  for (const StringId cause : cause_ids) causes.emplace_back(profile.text(cause), 0);
  DWELL_TRY(check_choices("process", selection.processes, processes));
  DWELL_TRY(check_choices("thread", selection.threads, threads));
  DWELL_TRY(check_choices("class", selection.classes, classes));
  return check_choices("cause", selection.causes, causes);
}

// Copies what is asked for into a builder, each element once.
class Copier {
 public:
  explicit Copier(const Profile& from)
      : from_(from),
        modules_(from.modules.size(), kNotCopied),
        frames_(from.frames.size(), kNotCopied),
        stacks_(from.stacks.size(), kNotCopied),
        threads_(from.threads.size(), kNotCopied) {}

  uint32_t module(uint32_t index) {
    if (modules_[index] == kNotCopied) {
      const Module& m = from_.modules[index];
      modules_[index] = to_.module(from_.text(m.path), from_.text(m.build_id), m.kind);
    }
    return modules_[index];
  }
  uint32_t frame(uint32_t index) {
    if (frames_[index] == kNotCopied) {
      Frame frame = from_.frames[index];
      frame.function = string(frame.function);
      frame.symbol = string(frame.symbol);
      frame.file = string(frame.file);
      frame.module = module(frame.module);
      frames_[index] = to_.frame(frame);
    }
    return frames_[index];
  }
  uint32_t stack(uint32_t index) {
    if (stacks_[index] == kNotCopied) {
      Stack copy = from_.stacks[index];
      for (uint32_t& f : copy.frames) f = frame(f);
      stacks_[index] = to_.stack(copy.frames, copy.user_complete, copy.truncated, copy.walk);
    }
    return stacks_[index];
  }
  void thread(uint32_t index) {
    Thread thread = from_.threads[index];
    Process process = from_.processes[thread.process];
    process.comm = string(process.comm);
    process.executable = string(process.executable);
    process.command_line = string(process.command_line);
    thread.process = to_.process(process);
    thread.comm = string(thread.comm);
    threads_[index] = to_.thread(thread);
  }
  bool has_thread(uint32_t index) const { return threads_[index] != kNotCopied; }
  void row(Row row) {
    row.thread = threads_[row.thread];
    row.stack = stack(row.stack);
    row.cause = string(row.cause);
    to_.add(row);
  }
  void interval(Interval interval) {
    interval.thread = threads_[interval.thread];
    interval.stack = stack(interval.stack);
    interval.cause = string(interval.cause);
    to_.facts().timeline.push_back(interval);
  }
  // The row stays out; the books of its thread say so. Overflow rows are in nobody's books.
  void leave_out(const Row& row) {
    if (row.overflow) return;
    ThreadTimes& times = to_.facts().threads[threads_[row.thread]].times;
    times.filtered_ns += row.total_ns();
    times.filtered_intervals += row.count;
  }
  void facts() {
    Profile& to = to_.facts();
    to.dwell_version = from_.dwell_version;
    to.host = from_.host;
    to.kernel = from_.kernel;
    to.cpus = from_.cpus;
    to.target = from_.target;
    to.options = from_.options;
    to.window = from_.window;
    to.timeline_min_ns = from_.timeline_min_ns;
    to.losses = from_.losses;
    to.warnings = from_.warnings;
    to.kernel_memory_bytes = from_.kernel_memory_bytes;
    to.user_memory_bytes = from_.user_memory_bytes;
    to.recorder_cpu_ns = from_.recorder_cpu_ns;
  }
  // Of the modules that the selection still shows.
  void unresolved() {
    for (UnresolvedModule unresolved : from_.unresolved) {
      if (modules_[unresolved.module] == kNotCopied) continue;
      unresolved.module = modules_[unresolved.module];
      to_.facts().unresolved.push_back(unresolved);
    }
  }
  Profile finish() && { return std::move(to_).finish(); }

 private:
  StringId string(StringId id) { return to_.string(from_.text(id)); }

  const Profile& from_;
  ProfileBuilder to_;
  std::vector<uint32_t> modules_, frames_, stacks_, threads_;
};

void note_selection(Profile& profile, const Selection& selection) {
  const auto note = [&](const char* name, const std::vector<std::string>& texts) {
    for (const std::string& text : texts)
      profile.options.push_back(fmt::format("report-{}={}", name, text));
  };
  note("process", selection.processes);
  note("thread", selection.threads);
  note("class", selection.classes);
  note("cause", selection.causes);
}

}  // namespace

Result<Profile> select(const Profile& profile, const Selection& selection) {
  DWELL_TRY(check(profile, selection));
  Copier copier(profile);
  copier.facts();
  for (uint32_t i = 0; i < profile.threads.size(); ++i) {
    const Thread& thread = profile.threads[i];
    const Process& process = profile.processes[thread.process];
    if (matches(selection.processes, profile.text(process.comm), process.pid) &&
        matches(selection.threads, profile.text(thread.comm), thread.tid))
      copier.thread(i);
  }
  const auto is_wanted = [&](const auto& wait) {
    return matches(selection.classes, wait_class_name(wait.wait_class)) &&
           matches(selection.causes, profile.text(wait.cause));
  };
  for (const Row& row : profile.rows) {
    if (!copier.has_thread(row.thread)) continue;
    if (is_wanted(row)) {
      copier.row(row);
    } else {
      copier.leave_out(row);
    }
  }
  // Threads keep their order, and so does the timeline.
  for (const Interval& interval : profile.timeline)
    if (copier.has_thread(interval.thread) && is_wanted(interval)) copier.interval(interval);
  copier.unresolved();
  Profile selected = std::move(copier).finish();
  note_selection(selected, selection);
  return selected;
}

}  // namespace dwell
