#include "cli/record_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "cli/option_words.h"
#include "profile/profile.h"

namespace dwell::cli {
namespace {

constexpr uint32_t kRunningBit = 1u << 31;

std::vector<std::string> split(const std::vector<std::string>& lists) {
  std::vector<std::string> items;
  for (const std::string& list : lists)
    for (size_t at = 0; at <= list.size();) {
      const size_t comma = std::min(list.find(',', at), list.size());
      items.push_back(list.substr(at, comma - at));
      at = comma + 1;
    }
  return items;
}

Result<std::vector<uint32_t>> parse_ids(const std::vector<std::string>& lists, const char* option) {
  std::vector<uint32_t> ids;
  for (const std::string& item : split(lists)) {
    const auto id = parse_u32(item);
    if (!id)
      return usage_error(
          fmt::format("{}: '{}' is not a process or thread id", option, printable(item)));
    ids.push_back(*id);
  }
  return ids;
}

Result<uint32_t> parse_classes(const std::vector<std::string>& lists) {
  uint32_t mask = 0;
  for (const std::string& name : split(lists)) {
    uint32_t bits = 0;
    for (int i = 1; i < kWaitClassCount; ++i) {
      const auto wait_class = static_cast<WaitClass>(i);
      const bool blocked = is_blocked_class(wait_class);
      if (name == wait_class_name(wait_class) || name == (blocked ? "blocked" : "run-queue"))
        bits |= 1u << i;
    }
    if (bits == 0)
      return usage_error(
          fmt::format("--class: unknown class '{}'; there are blocked, run-queue, interruptible, "
                      "io, uninterruptible, killable, "
                      "idle, stopped, traced, parked, frozen, rtlock, other, preempted, "
                      "preempted-kernel, yielded, signal, new, "
                      "runnable",
                      printable(name)));
    mask |= bits;
  }
  return mask;
}

// Letters as ps and other tools show them, or a bit mask; 0 stands for running.
Result<uint32_t> parse_states(const std::vector<std::string>& lists) {
  uint32_t mask = 0;
  for (const std::string& name : split(lists)) {
    if (name == "R" || name == "0")
      mask |= kRunningBit;
    else if (name == "S")
      mask |= 0x1;
    else if (name == "D")
      mask |= 0x2;
    else if (name == "T")
      mask |= 0x4;
    else if (name == "t")
      mask |= 0x8;
    else if (name == "P")
      mask |= 0x40;
    else if (name == "I")
      mask |= 0x400;
    else if (const auto bits = parse_u32(name))
      mask |= *bits;
    else
      return usage_error(fmt::format(
          "--state: '{}' is neither a letter of R S D T t P I nor a bit mask", printable(name)));
  }
  return mask;
}

Status check_targets(const RecordWords& words, const RecordOptions& options) {
  const bool ids = !options.pids.empty() || !options.tids.empty();
  const bool command = !options.command.empty();
  if (!ids && !options.all && !command)
    return usage_error(
        "what should be recorded? -p PID, -t TID, -a for the whole machine, or -- COMMAND ARGS");
  if (ids && (options.all || command))
    return usage_error(
        "-p and -t exclude -a and -- COMMAND; -a -- COMMAND records the whole machine "
        "while the command runs");
  if (words.user_threads && words.kernel_threads)
    return usage_error(
        "--user-threads and --kernel-threads exclude each other; without them -a records both");
  if (words.follow && words.no_follow)
    return usage_error("--follow and --no-follow exclude each other");
  return {};
}

Status check_sizes(const RecordWords& words, probe::ProbeOptions& probe) {
  const auto set = [](const std::string& text, const char* option, uint32_t minimum,
                      uint32_t maximum, uint32_t& field) -> Status {
    if (text.empty()) return {};
    DWELL_ASSIGN(field, parse_number(text, option, minimum, maximum));
    return {};
  };
  DWELL_TRY(set(words.rows, "--rows", 1, 1 << 24, probe.rows));
  DWELL_TRY(set(words.stacks, "--stacks", 1, 1 << 24, probe.stacks));
  DWELL_TRY(set(words.stack_ring, "--stack-ring", 4096, 1 << 30, probe.stack_ring_bytes));
  DWELL_TRY(set(words.unwind_rows, "--unwind-rows", 0, 1 << 28, probe.unwind_rows));
  return set(words.thread_ring, "--thread-ring", 4096, 1 << 30, probe.thread_ring_bytes);
}

// Leaves `ns` alone if the option was not given.
Status set_time(const std::string& text, const char* option, uint64_t& ns) {
  if (text.empty()) return {};
  const auto parsed = parse_duration(text);
  if (!parsed) return usage_error(fmt::format("{}: {}", option, parsed.error().message));
  ns = *parsed;
  return {};
}

Status check_timeline(const RecordWords& words, RecordOptions& options) {
  if (!words.timeline) {
    if (!words.timeline_ring.empty() || !words.timeline_intervals.empty())
      return usage_error("--timeline-ring and --timeline-intervals need --timeline");
    return {};
  }
  // The option alone means all of them.
  uint64_t& min_ns = options.probe.timeline_min_ns.emplace(0);
  DWELL_TRY(set_time(*words.timeline, "--timeline", min_ns));
  collect::TimelineLimits& limits = options.timeline;
  if (!words.timeline_ring.empty()) {
    DWELL_ASSIGN(limits.ring_bytes,
                 parse_number(words.timeline_ring, "--timeline-ring", 4096, 1 << 30));
  }
  if (!words.timeline_intervals.empty()) {
    DWELL_ASSIGN(limits.intervals,
                 parse_number(words.timeline_intervals, "--timeline-intervals", 1, 1 << 24));
  }
  return {};
}

Status check_times(const RecordWords& words, RecordOptions& options) {
  if (!words.duration.empty()) {
    DWELL_TRY(set_time(words.duration, "-d", options.duration_ns.emplace()));
    if (*options.duration_ns == 0)
      return usage_error(
          fmt::format("-d: '{}' is too short; the duration must be longer than 0, for example 10s",
                      printable(words.duration)));
  }
  probe::ProbeOptions& probe = options.probe;
  DWELL_TRY(set_time(words.min, "--min", probe.min_ns));
  DWELL_TRY(set_time(words.max, "--max", probe.max_ns));
  if (probe.min_ns <= probe.max_ns) return {};
  return usage_error(
      fmt::format("--min {} is longer than --max {}: no interval can be both; swap them",
                  format_duration(probe.min_ns), format_duration(probe.max_ns)));
}

}  // namespace

std::string RecordOptions::target_text() const {
  const std::string run = "-- " + printable(fmt::format("{}", fmt::join(command, " ")));
  if (all) return command.empty() ? "-a" : "-a " + run;
  if (!command.empty()) return run;
  std::string text;
  if (!pids.empty()) text += fmt::format("-p {}", fmt::join(pids, ","));
  if (!tids.empty()) text += fmt::format("{}-t {}", text.empty() ? "" : " ", fmt::join(tids, ","));
  return text;
}

std::vector<std::string> RecordOptions::effective() const {
  std::vector<std::string> list;
  if (probe.min_ns > 0) list.push_back("min=" + format_duration(probe.min_ns));
  if (probe.max_ns != ~uint64_t{0}) list.push_back("max=" + format_duration(probe.max_ns));
  if (probe.class_mask != ~0u) list.push_back(fmt::format("classes=0x{:x}", probe.class_mask));
  if (probe.state_mask != 0) list.push_back(fmt::format("states=0x{:x}", probe.state_mask));
  list.push_back(fmt::format("follow={}", probe.follow ? "yes" : "no"));
  list.push_back(fmt::format("threads={}", probe.user_threads && probe.kernel_threads
                                               ? "user,kernel"
                                           : probe.user_threads ? "user"
                                                                : "kernel"));
  if (!python) list.push_back("python=no");
  list.push_back(fmt::format("rows={}", probe.rows));
  list.push_back(fmt::format("stacks={}", probe.stacks));
  if (probe.timeline_min_ns) {
    list.push_back("timeline=" + format_duration(*probe.timeline_min_ns));
    list.push_back(fmt::format("timeline-intervals={}", timeline.intervals));
  }
  return list;
}

namespace {

void add_choice_options(CLI::App& command, RecordWords& words) {
  command.add_option("--class", words.classes,
                     "Only waits of these classes, e.g. blocked or io,preempted");
  command.add_option("--state", words.states,
                     "Only waits in these task states: letters (S,D,R...) or a bit mask");
  command
      .add_option("--min", words.min,
                  "Only intervals of at least this length, e.g. 10ms; the rest is summed")
      ->check(refuse_empty);
  command.add_option("--max", words.max, "Only intervals of at most this length")
      ->check(refuse_empty);
  command
      .add_option("--timeline", words.timeline,
                  "Keep single intervals of at least this length too (--timeline=1ms); alone: all")
      ->expected(0, 1)
      ->option_text("[=MIN]");
  command.add_flag("--no-user-stacks", words.no_user_stacks, "Do not take user stacks");
  command.add_flag("--no-python", words.no_python, "Do not take the frames of Python programs");
  command.add_flag("--no-kernel-stacks", words.no_kernel_stacks, "Do not take kernel stacks");
  command.add_flag("--preempt-stacks", words.preempt_stacks,
                   "Take kernel stacks of preempted threads too");
  command.add_flag("--no-demangle", words.no_demangle,
                   "Leave C++ and Rust names as they are in the symbol table");
}

void add_limits(CLI::App& command, RecordWords& words) {
  const auto add = [&](const char* name, std::string& word, const char* help) {
    command.add_option(name, word, help)->check(refuse_empty)->group("Limits");
  };
  add("--rows", words.rows, "Distinct rows kept per epoch (262144)");
  add("--stacks", words.stacks, "Distinct stacks kept (524288)");
  add("--stack-ring", words.stack_ring, "Bytes of the ring for new stacks (16777216)");
  add("--thread-ring", words.thread_ring, "Bytes of the ring for ended threads (4194304)");
  add("--timeline-ring", words.timeline_ring,
      "Bytes of each CPU's ring for single intervals (1048576)");
  add("--timeline-intervals", words.timeline_intervals, "Single intervals kept (1048576)");
  add("--unwind-rows", words.unwind_rows,
      "Rows of unwind data kept, 4 bytes each; 0: user stacks follow frame pointers (33554432)");
  command
      .add_flag("--raw-tracepoints", words.raw,
                "Attach through raw tracepoints, as on kernels that refuse typed ones")
      ->group("Limits");
}

}  // namespace

void add_record_command(CLI::App& app, RecordWords& words) {
  CLI::App* command = app.add_subcommand("record", "Record where threads spend their wall time");
  command->add_option("-p,--pid", words.pids, "Processes, with all their threads: PID[,PID...]");
  command->add_option("-t,--tid", words.tids, "Single threads: TID[,TID...]");
  command->add_flag("-a,--all", words.all, "The whole machine; with a command, while it runs");
  command
      ->add_option("-d,--duration", words.duration,
                   "Stop after this time, e.g. 10s (else: Ctrl-C, or the command's end)")
      ->check(refuse_empty);
  command->add_option("-o,--output", words.output, "File to write")->capture_default_str();
  command->add_flag("--follow", words.follow, "Record children of the processes too (the default)");
  command->add_flag("--no-follow", words.no_follow, "Do not record children");
  command->add_flag("--user-threads", words.user_threads, "With -a: only threads of user programs");
  command->add_flag("--kernel-threads", words.kernel_threads, "With -a: only kernel threads");
  add_choice_options(*command, words);
  add_limits(*command, words);
  command->add_flag("-q,--quiet", words.quiet, "No progress, no summary");
  command->add_option(
      "command", words.command,
      "After --: a command to start and record, from its first instruction to its exit");
  command->positionals_at_end();
}

Result<RecordOptions> check(const RecordWords& words) {
  RecordOptions options;
  DWELL_ASSIGN(options.pids, parse_ids(words.pids, "-p"));
  DWELL_ASSIGN(options.tids, parse_ids(words.tids, "-t"));
  options.all = words.all;
  options.command = words.command;
  options.output = words.output;
  options.quiet = words.quiet;
  options.demangle = !words.no_demangle;
  options.python = !words.no_python;
  DWELL_TRY(check_targets(words, options));
  DWELL_TRY(check_times(words, options));
  probe::ProbeOptions& probe = options.probe;
  probe.all = words.all;
  probe.follow = !words.no_follow;
  probe.user_threads = !words.kernel_threads;
  // A kernel thread named by its id is meant; with -a both kinds are.
  probe.kernel_threads = !words.user_threads;
  probe.user_stacks = !words.no_user_stacks;
  probe.kernel_stacks = !words.no_kernel_stacks;
  probe.runnable_kernel_stacks = words.preempt_stacks;
  probe.raw = words.raw;
  if (!words.classes.empty()) {
    DWELL_ASSIGN(probe.class_mask, parse_classes(words.classes));
  }
  DWELL_ASSIGN(probe.state_mask, parse_states(words.states));
  DWELL_TRY(check_sizes(words, probe));
  DWELL_TRY(check_timeline(words, options));
  return options;
}

}  // namespace dwell::cli
