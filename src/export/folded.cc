#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text.h"
#include "export/export.h"
#include "export/words.h"

namespace dwell {
namespace {

// A name stands in every line that holds it: a megabyte in ten thousand stacks would be 10 GB.
constexpr size_t kNameBytesMax = 4096;

bool is_number_character(char c) { return (c >= '0' && c <= '9') || c == '.'; }

// Blanks at the ends, and one before a number at the end, read as the end of the stack: tools take
// "name 12 345" for a differential line.
void guard_blanks(std::string& name) {
  for (size_t i = 0; i < name.size() && name[i] == ' '; ++i) name[i] = '_';
  for (size_t i = name.size(); i > 0 && name[i - 1] == ' '; --i) name[i - 1] = '_';
  size_t end = name.size();
  while (end > 0 && is_number_character(name[end - 1])) --end;
  for (; end > 0 && end < name.size() && name[end - 1] == ' '; --end) name[end - 1] = '_';
}

std::string folded_name(std::string_view untrusted, std::string_view if_empty) {
  if (untrusted.empty()) return std::string(if_empty);
  const bool cut = untrusted.size() > kNameBytesMax;
  std::string name(untrusted.substr(0, kNameBytesMax));
  for (char& c : name) {
    if (c == ';') c = ':';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  name = printable(name);
  if (cut) name += "...";
  guard_blanks(name);
  return name;
}

std::string folded_frame(const Profile& profile, const Frame& frame) {
  std::string name = folded_name(frame_text(profile, frame), "[unknown]");
  if (frame.kind == FrameKind::kKernel) name += "_[k]";
  if (frame.inlined) name += "_[i]";
  const bool jit = profile.modules[frame.module].kind == ModuleKind::kJit;
  if (frame.kind == FrameKind::kUser && jit) name += "_[j]";
  return name;
}

// "process;thread"; '#' would make the line a comment for some readers.
std::string thread_prefix(const Profile& profile, const Thread& thread) {
  std::string process = folded_name(profile.text(profile.processes[thread.process].comm), kUnnamed);
  if (process.front() == '#') process.front() = '?';
  return process + ';' + folded_name(profile.text(thread.comm), kUnnamed);
}

struct Line {
  std::string text;  // without the number
  uint64_t ns = 0;
};

class FoldedLines {
 public:
  explicit FoldedLines(const Profile& profile) : profile_(profile) {
    frames_.reserve(profile.frames.size());
    for (const Frame& frame : profile.frames) frames_.push_back(folded_frame(profile, frame));
    prefixes_.reserve(profile.threads.size());
    for (const Thread& thread : profile.threads)
      prefixes_.push_back(thread_prefix(profile, thread));
  }

  void add_rows(View view);
  void add_other_wall_time();
  std::string write() &&;

 private:
  void add_row(const Row& row, uint64_t ns);

  const Profile& profile_;
  std::vector<std::string> frames_;
  std::vector<std::string> prefixes_;
  std::vector<Line> lines_;
};

void FoldedLines::add_row(const Row& row, uint64_t ns) {
  const Stack& stack = profile_.stacks[row.stack];
  std::string text = prefixes_[row.thread];
  if (lacks_truncated_root(profile_, stack)) (text += ';') += kTruncatedRoot;
  for (size_t i = stack.frames.size(); i > 0; --i) (text += ';') += frames_[stack.frames[i - 1]];
  if (stack.frames.empty()) (text += ';') += kNoStack;
  lines_.push_back({std::move(text), ns});
}

// Rows of one thread and stack become one line here already: the rest needs their text.
void FoldedLines::add_rows(View view) {
  struct Part {
    uint32_t thread, stack, row;
    uint64_t ns;
  };
  std::vector<Part> parts;
  parts.reserve(profile_.rows.size());
  for (uint32_t i = 0; i < profile_.rows.size(); ++i) {
    const Row& row = profile_.rows[i];
    const uint64_t ns = time_of(row, view);
    if (ns > 0) parts.push_back({row.thread, row.stack, i, ns});
  }
  std::ranges::sort(parts, {}, [](const Part& p) { return std::tuple(p.thread, p.stack); });
  for (size_t i = 0; i < parts.size();) {
    const Part& first = parts[i];
    uint64_t ns = 0;
    for (; i < parts.size() && parts[i].thread == first.thread && parts[i].stack == first.stack;
         ++i)
      ns += parts[i].ns;
    add_row(profile_.rows[first.row], ns);
  }
}

void FoldedLines::add_other_wall_time() {
  for (size_t i = 0; i < profile_.threads.size(); ++i) {
    const ThreadTimes& times = profile_.threads[i].times;
    const std::pair<const char*, uint64_t> leaves[] = {{";[running]", times.running_ns},
                                                       {";[lost]", times.lost_ns},
                                                       {";[filtered]", times.filtered_ns}};
    for (const auto& [leaf, ns] : leaves)
      if (ns > 0) lines_.push_back({prefixes_[i] + leaf, ns});
  }
}

std::string FoldedLines::write() && {
  std::ranges::sort(lines_, {}, &Line::text);
  size_t kept = 0;
  for (size_t i = 0; i < lines_.size();) {
    Line line{std::move(lines_[i].text), lines_[i].ns};
    for (++i; i < lines_.size() && lines_[i].text == line.text; ++i) line.ns += lines_[i].ns;
    line.text += fmt::format(" {}\n", line.ns);
    lines_[kept++] = std::move(line);
  }
  lines_.resize(kept);
  // Once more, with the numbers: "a 5" stands before "a!b 3" but after "a  b 3".
  std::ranges::sort(lines_, {}, &Line::text);
  std::string out;
  for (const Line& line : lines_) out += line.text;
  return out;
}

}  // namespace

std::string folded(const Profile& profile, const FoldedOptions& options) {
  FoldedLines lines(profile);
  lines.add_rows(options.view);
  if (options.wall) lines.add_other_wall_time();
  return std::move(lines).write();
}

}  // namespace dwell
