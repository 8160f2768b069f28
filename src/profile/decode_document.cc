#include <fmt/format.h>
#include <google/protobuf/arena.h>
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "profile/document.h"
#include "profile/dwell_profile.pb.h"

namespace dwell {
namespace {

// By the field number in Document.
struct TableLimit {
  int field;
  const char* name;
  uint64_t max;
};
constexpr TableLimit kTableLimits[] = {
    {2, "strings", kStringsMax},     {3, "modules", kModulesMax},
    {6, "processes", kProcessesMax}, {7, "threads", kThreadsMax},
    {9, "losses", kLossesMax},       {10, "unresolved modules", kUnresolvedMax},
    {11, "options", kOptionsMax},    {12, "warnings", kWarningsMax},
};

std::unexpected<Error> damaged(std::string what) {
  return runtime_error("damaged: " + std::move(what));
}

bool skip_value(google::protobuf::io::CodedInputStream& in, uint32_t tag) {
  uint64_t value = 0;
  uint32_t length = 0;
  switch (tag & 7) {
    case 0:
      return in.ReadVarint64(&value);
    case 1:
      return in.Skip(8);
    case 2:
      return in.ReadVarint32(&length) &&
             length <= static_cast<uint32_t>(std::numeric_limits<int>::max()) &&
             in.Skip(static_cast<int>(length));
    case 5:
      return in.Skip(4);
    default:
      return false;  // groups: not in our schema
  }
}

// Counts the elements of each table on the wire, before anything is allocated for them.
Status check_table_sizes(std::string_view message) {
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(message.data()),
                                            static_cast<int>(message.size()));
  uint64_t counts[std::size(kTableLimits)] = {};
  while (const uint32_t tag = in.ReadTag()) {
    if (!skip_value(in, tag)) return damaged("the message does not parse");
    for (size_t i = 0; i < std::size(kTableLimits); ++i) {
      if (static_cast<int>(tag >> 3) == kTableLimits[i].field && ++counts[i] > kTableLimits[i].max)
        return damaged(fmt::format("more than {} {}", kTableLimits[i].max, kTableLimits[i].name));
    }
  }
  return {};
}

// Whether all columns of a table are as long as the first, and that within `max`.
template <typename... Columns>
bool same_length(uint64_t max, const auto& first, const Columns&... others) {
  return static_cast<uint64_t>(first.size()) <= max && ((others.size() == first.size()) && ...);
}

template <typename Enum>
bool to_enum(uint32_t value, Enum last, Enum& out) {
  if (value > static_cast<uint32_t>(last)) return false;
  out = static_cast<Enum>(value);
  return true;
}

class DocumentReader {
 public:
  explicit DocumentReader(file::Document& document) : in_(document) {}

  Result<Profile> read() && {
    read_recording();
    DWELL_TRY(read_strings());
    DWELL_TRY(read_modules());
    DWELL_TRY(read_frames());
    DWELL_TRY(read_stacks());
    DWELL_TRY(read_processes());
    DWELL_TRY(read_threads());
    DWELL_TRY(read_rows());
    DWELL_TRY(read_timeline());
    DWELL_TRY(read_findings());
    if (!sums_fit(out_)) return damaged("times add up to more than 2^63 ns");
    return std::move(out_);
  }

 private:
  bool is_string(uint32_t id) const { return id < out_.strings.size(); }

  void read_recording();
  Status read_strings();
  Status read_modules();
  Status read_frames();
  Status read_stacks();
  Status read_processes();
  Status read_threads();
  Status read_rows();
  Status read_timeline();
  Status read_findings();

  file::Document& in_;
  Profile out_;
};

void DocumentReader::read_recording() {
  const file::Recording& recording = in_.recording();
  out_.dwell_version = recording.dwell_version();
  out_.host = recording.host();
  out_.kernel = recording.kernel();
  out_.cpus = recording.cpus();
  out_.target = recording.target();
  out_.window = {recording.start_ns(), recording.end_ns(), recording.start_unix_ns(),
                 recording.end_unix_ns()};
  out_.kernel_memory_bytes = recording.kernel_memory_bytes();
  out_.user_memory_bytes = recording.user_memory_bytes();
  out_.recorder_cpu_ns = recording.recorder_cpu_ns();
}

Status DocumentReader::read_strings() {
  if (out_.window.end_ns < out_.window.start_ns) return damaged("the window ends before it starts");
  if (in_.strings_size() == 0 || !in_.strings(0).empty())
    return damaged("the first string is not the empty one");
  out_.strings.clear();
  out_.strings.reserve(static_cast<size_t>(in_.strings_size()));
  for (std::string& text : *in_.mutable_strings()) out_.strings.push_back(std::move(text));
  return {};
}

Status DocumentReader::read_modules() {
  out_.modules.reserve(static_cast<size_t>(in_.modules_size()));
  for (const file::Module& m : in_.modules()) {
    Module module{m.path(), m.build_id(), ModuleKind::kUnknown};
    if (!is_string(m.path()) || !is_string(m.build_id()) ||
        !to_enum(m.kind(), ModuleKind::kBpf, module.kind))
      return damaged(fmt::format("module {}", out_.modules.size()));
    out_.modules.push_back(module);
  }
  return {};
}

Status DocumentReader::read_frames() {
  const file::Frames& f = in_.frames();
  const bool has_lines = f.line_size() > 0;
  if (!same_length(kFramesMax, f.function(), f.symbol(), f.module(), f.address(), f.offset(),
                   f.how(), f.kind()) ||
      !same_length(kFramesMax, f.line(), f.file()) ||
      (has_lines && f.line_size() != f.function_size()))
    return damaged("the columns of the frames differ in length or are too long");
  out_.frames.reserve(static_cast<size_t>(f.function_size()));
  for (int i = 0; i < f.function_size(); ++i) {
    Frame frame{.function = f.function(i),
                .symbol = f.symbol(i),
                .module = f.module(i),
                .address = f.address(i),
                .offset = f.offset(i),
                .line = has_lines ? f.line(i) : 0,
                .file = has_lines ? f.file(i) : 0};
    if (!is_string(frame.function) || !is_string(frame.symbol) || !is_string(frame.file) ||
        frame.module >= out_.modules.size() || !to_enum(f.how(i), kResolutionLast, frame.how) ||
        !to_enum(f.kind(i), FrameKind::kPlaceholder, frame.kind))
      return damaged(fmt::format("frame {}", i));
    out_.frames.push_back(frame);
  }
  return {};
}

Status DocumentReader::read_stacks() {
  const file::Stacks& s = in_.stacks();
  const bool has_walks = s.walk_end_size() > 0;
  if (!same_length(kStacksMax, s.depth(), s.flags()) ||
      !same_length(kStacksMax, s.walk_end(), s.pointer_steps_low(), s.pointer_steps_high()) ||
      (has_walks && s.walk_end_size() != s.depth_size()))
    return damaged("the columns of the stacks differ in length or are too long");
  for (uint32_t frame : s.frames())
    if (frame >= out_.frames.size()) return damaged("a stack names a frame that is not there");
  out_.stacks.reserve(static_cast<size_t>(s.depth_size()));
  const uint32_t* next = s.frames().data();
  size_t left = static_cast<size_t>(s.frames_size());
  for (int i = 0; i < s.depth_size(); ++i) {
    const uint32_t depth = s.depth(i);
    if (depth > left || s.flags(i) > 3) return damaged(fmt::format("stack {}", i));
    Walk walk;
    if (has_walks) {
      if (!to_enum(s.walk_end(i), WalkEnd::kCompat, walk.end))
        return damaged(fmt::format("stack {}", i));
      walk.pointer_steps = {s.pointer_steps_low(i), s.pointer_steps_high(i)};
    }
    out_.stacks.push_back(
        {{next, next + depth}, (s.flags(i) & 1) != 0, (s.flags(i) & 2) != 0, walk});
    next += depth;
    left -= depth;
  }
  return left == 0 ? Status{} : damaged("frames that belong to no stack");
}

Status DocumentReader::read_processes() {
  out_.processes.reserve(static_cast<size_t>(in_.processes_size()));
  for (const file::Process& p : in_.processes()) {
    if (!is_string(p.comm()) || !is_string(p.executable()) || !is_string(p.command_line()))
      return damaged(fmt::format("process {}", out_.processes.size()));
    out_.processes.push_back({p.pid(), p.parent_pid(), p.exec_id(), p.start_boottime_ns(), p.comm(),
                              p.executable(), p.command_line()});
  }
  return {};
}

ThreadTimes times_of(const file::Thread& t) {
  return {.alive_ns = t.alive_ns(),
          .running_ns = t.running_ns(),
          .run_queue_ns = t.run_queue_ns(),
          .blocked_ns = t.blocked_ns(),
          .censored_run_queue_ns = t.censored_run_queue_ns(),
          .censored_blocked_ns = t.censored_blocked_ns(),
          .lost_ns = t.lost_ns(),
          .filtered_ns = t.filtered_ns(),
          .overflow_ns = t.overflow_ns(),
          .intervals = t.intervals(),
          .blocked_intervals = t.blocked_intervals(),
          .filtered_intervals = t.filtered_intervals(),
          .overflow_intervals = t.overflow_intervals()};
}

Status DocumentReader::read_threads() {
  out_.threads.reserve(static_cast<size_t>(in_.threads_size()));
  for (const file::Thread& t : in_.threads()) {
    Thread thread{.process = t.process(),
                  .tid = t.tid(),
                  .start_boottime_ns = t.start_boottime_ns(),
                  .birth_ns = t.birth_ns(),
                  .end_ns = t.end_ns(),
                  .comm = t.comm(),
                  .kernel_thread = (t.flags() & 1) != 0,
                  .folded = (t.flags() & 2) != 0,
                  .folded_count = t.folded_count(),
                  .times = times_of(t),
                  .schedstat = std::nullopt};
    if (thread.process >= out_.processes.size() || !is_string(thread.comm) || t.flags() > 3 ||
        !to_enum(t.end(), ThreadEnd::kRenamed, thread.end) ||
        t.has_schedstat_on_cpu_ns() != t.has_schedstat_run_queue_ns())
      return damaged(fmt::format("thread {}", out_.threads.size()));
    if (t.has_schedstat_on_cpu_ns())
      thread.schedstat = {t.schedstat_on_cpu_ns(), t.schedstat_run_queue_ns(),
                          t.has_schedstat_stretch_ns() ? t.schedstat_stretch_ns() : t.alive_ns()};
    out_.threads.push_back(thread);
  }
  return {};
}

// Fills the buckets that `mask` names from `counts`; false if they run out or one is zero.
bool read_histogram(uint32_t mask, const google::protobuf::RepeatedField<uint32_t>& counts,
                    int& next, std::array<uint32_t, kHistogramBuckets>& out) {
  for (int bucket = 0; bucket < kHistogramBuckets; ++bucket) {
    if ((mask >> bucket & 1) == 0) continue;
    if (next == counts.size() || counts[next] == 0) return false;
    out[bucket] = counts[next++];
  }
  return true;
}

Status DocumentReader::read_rows() {
  const file::Rows& r = in_.rows();
  if (!same_length(kRowsMax, r.thread(), r.stack(), r.cause(), r.wait_class(), r.state(), r.flags(),
                   r.count(), r.blocked_ns(), r.run_queue_ns(), r.max_ns(), r.histogram_mask()))
    return damaged("the columns of the rows differ in length or are too long");
  out_.rows.reserve(static_cast<size_t>(r.thread_size()));
  int next_count = 0;
  for (int i = 0; i < r.thread_size(); ++i) {
    const uint32_t flags = r.flags(i);
    Row row{.thread = r.thread(i),
            .stack = r.stack(i),
            .cause = r.cause(i),
            .state = r.state(i),
            .censored_left = (flags & 1) != 0,
            .censored_right = (flags & 2) != 0,
            .overflow = (flags & 4) != 0,
            .count = r.count(i),
            .blocked_ns = r.blocked_ns(i),
            .run_queue_ns = r.run_queue_ns(i),
            .max_ns = r.max_ns(i)};
    if (row.thread >= out_.threads.size() || row.stack >= out_.stacks.size() ||
        !is_string(row.cause) || flags > 7 ||
        !to_enum(r.wait_class(i), WaitClass::kRunnable, row.wait_class) ||
        !read_histogram(r.histogram_mask(i), r.histogram_counts(), next_count, row.histogram))
      return damaged(fmt::format("row {}", i));
    out_.rows.push_back(row);
  }
  if (next_count != r.histogram_counts_size())
    return damaged("histogram counts that belong to no row");
  return {};
}

// Whether `interval` lies in the window and, of one thread, not before `previous`.
bool in_place(const Interval& interval, const Interval* previous, const Window& window) {
  if (interval.start_ns < window.start_ns || interval.start_ns > window.end_ns) return false;
  const uint64_t left = window.end_ns - interval.start_ns;
  if (interval.blocked_ns > left || interval.run_queue_ns > left - interval.blocked_ns)
    return false;
  return previous == nullptr || std::pair(previous->thread, previous->start_ns) <=
                                    std::pair(interval.thread, interval.start_ns);
}

Status DocumentReader::read_timeline() {
  if (!in_.has_timeline()) return {};
  const file::Timeline& t = in_.timeline();
  if (!same_length(kIntervalsMax, t.thread(), t.stack(), t.cause(), t.wait_class(), t.flags(),
                   t.state(), t.cpu(), t.start_step_ns(), t.blocked_ns(), t.run_queue_ns()))
    return damaged("the columns of the timeline differ in length or are too long");
  out_.timeline_min_ns = t.min_ns();
  out_.timeline.reserve(static_cast<size_t>(t.thread_size()));
  uint64_t start_ns = out_.window.start_ns;
  for (int i = 0; i < t.thread_size(); ++i) {
    start_ns += static_cast<uint64_t>(t.start_step_ns(i));
    Interval interval{.thread = t.thread(i),
                      .stack = t.stack(i),
                      .cause = t.cause(i),
                      .censored_left = (t.flags(i) & 1) != 0,
                      .censored_right = (t.flags(i) & 2) != 0,
                      .state = t.state(i),
                      .cpu = t.cpu(i),
                      .start_ns = start_ns,
                      .blocked_ns = t.blocked_ns(i),
                      .run_queue_ns = t.run_queue_ns(i)};
    if (interval.thread >= out_.threads.size() || interval.stack >= out_.stacks.size() ||
        !is_string(interval.cause) || t.flags(i) > 3 ||
        !to_enum(t.wait_class(i), WaitClass::kRunnable, interval.wait_class) ||
        !in_place(interval, out_.timeline.empty() ? nullptr : &out_.timeline.back(), out_.window))
      return damaged(fmt::format("interval {} of the timeline", i));
    out_.timeline.push_back(interval);
  }
  return {};
}

Status DocumentReader::read_findings() {
  for (const file::Loss& l : in_.losses()) {
    out_.losses.push_back({l.name(), l.meaning(), l.count(), std::nullopt, l.is_loss()});
    if (l.has_ns()) out_.losses.back().ns = l.ns();
  }
  for (const file::UnresolvedModule& u : in_.unresolved()) {
    if (u.module() >= out_.modules.size()) return damaged("an unresolved module that is not there");
    out_.unresolved.push_back({u.module(), u.frames(), u.reason(), u.remedy()});
  }
  out_.options.assign(in_.options().begin(), in_.options().end());
  out_.warnings.assign(in_.warnings().begin(), in_.warnings().end());
  return {};
}

}  // namespace

Result<Profile> decode_document(std::string_view message) {
  if (message.size() > static_cast<size_t>(std::numeric_limits<int>::max()))
    return damaged("the message is too long");
  DWELL_TRY(check_table_sizes(message));
  google::protobuf::Arena arena;
  auto& document = *google::protobuf::Arena::CreateMessage<file::Document>(&arena);
  if (!document.ParseFromArray(message.data(), static_cast<int>(message.size())))
    return damaged("the message does not parse");
  DWELL_ASSIGN(Profile profile, DocumentReader(document).read());
  const bool sorted = std::ranges::is_sorted(profile.rows, std::greater<>(), &Row::total_ns);
  if (!sorted) return damaged("the rows are not sorted by time");
  return profile;
}

}  // namespace dwell
