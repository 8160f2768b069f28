#include "cli/record.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <iterator>
#include <memory>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text.h"
#include "cli/build_profile.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/stop_signal.h"
#include "collect/loss.h"
#include "collect/timeline.h"
#include "probe/doctor.h"
#include "probe/learner.h"
#include "probe/scheduler_code.h"
#include "profile/dwell_file.h"
#include "symbolize/table_cache.h"

namespace dwell::cli {
namespace {

constexpr int kDrainIntervalMs = 50;
constexpr uint64_t kEpochNs =
    10'000'000'000;  // an epoch is swapped after this, or when half its map is used
// Located between two looks at the rings, which must not fill meanwhile.
constexpr size_t kStacksPerRound = 4000;
constexpr uint64_t kProgressNs = 200'000'000;
// Compiling the unwind tables of what runs already; the window opens without the rest.
constexpr uint64_t kUnwindPatienceNs = 3'000'000'000;
constexpr std::chrono::milliseconds kUnwindPauseMs{50};  // between two looks at new mappings
// New mappings are taken in at once, or the first waits of a process would lack tables; but not
// more often than this.
constexpr uint64_t kAbsorbPauseNs = 2'000'000;

// What one recording holds on to, in the order in which it is made.
struct Session {
  RecordOptions options;
  std::optional<Command> command;
  std::vector<Fd> targets_alive;  // pidfds, readable when the process has ended
  std::optional<unwind::LoadedTables> unwinding;
  std::unique_ptr<symbolize::Symbolizer> symbolizer;
  std::optional<probe::Probe> probe;
  std::optional<collect::Drain> drain;
  std::unique_ptr<collect::Timeline> timeline;  // null without --timeline
  std::optional<probe::SignatureLearner> learner;
  Recording recording;
  collect::Batch batch;
  std::deque<collect::RawStack> waiting;  // received, not located yet; bounded by --stacks
  uint64_t epoch_began_ns = 0;
  uint64_t rows_before_epoch = 0;
  uint64_t kernel_memory_bytes = 0;
};

// A target that the other options leave out would make an empty recording.
Status check_kind(const probe::Target& target, const probe::ProbeOptions& options) {
  if (target.is_kernel ? options.kernel_threads : options.user_threads) return {};
  return usage_error(
      target.is_kernel
          ? fmt::format("{} is a kernel thread, which --user-threads leaves out", target.id)
          : fmt::format("{} is no kernel thread, and --kernel-threads leaves all others out",
                        target.id));
}

Result<std::vector<probe::Target>> find_targets(const RecordOptions& options,
                                                const std::optional<Command>& command) {
  std::vector<probe::Target> targets;
  for (const uint32_t pid : options.pids) {
    DWELL_ASSIGN(probe::Target target, probe::find_process(pid));
    targets.push_back(target);
  }
  for (const uint32_t tid : options.tids) {
    DWELL_ASSIGN(probe::Target target, probe::find_thread(tid));
    targets.push_back(target);
  }
  if (command && !options.all) {
    DWELL_ASSIGN(probe::Target target, probe::find_process(command->pid()));
    targets.push_back(target);
  }
  return targets;
}

Status start_probe(Session& session) {
  probe::SchedulerCode scheduler = probe::find_scheduler_code();
  const probe::SchedulerText text = scheduler.text();
  session.options.probe.sched_text_start = text.start;
  session.options.probe.sched_text_end = text.end;
  DWELL_ASSIGN(session.probe, probe::Probe::load(session.options.probe));
  DWELL_ASSIGN(const auto targets, find_targets(session.options, session.command));
  for (const probe::Target& target : targets) {
    DWELL_TRY(check_kind(target, session.options.probe));
    DWELL_TRY(session.probe->add_target(target));
    if (!target.is_thread)
      session.targets_alive.emplace_back(static_cast<int>(syscall(SYS_pidfd_open, target.id, 0)));
  }
  DWELL_ASSIGN(session.drain, collect::Drain::create(session.probe->maps()));
  if (const int map = session.probe->maps().timeline; map >= 0) {
    DWELL_ASSIGN(session.timeline, collect::Timeline::open(map, session.options.timeline));
  }
  scheduler.set_bytes(session.probe->read_kernel(text.start, text.end - text.start));
  session.recording.stacks.set_scheduler(std::move(scheduler));
  session.learner.emplace(probe::insert_into_map(session.probe->maps().signatures), text);
  return {};
}

std::optional<uint32_t> process_of(uint32_t tid) {
  const auto status = read_file(fmt::format("/proc/{}/status", tid), 1 << 16);
  const size_t at = status ? status->find("\nTgid:\t") : std::string::npos;
  if (at == std::string::npos) return std::nullopt;
  const size_t from = at + 7;
  const auto pid = parse_u32(status->substr(from, status->find('\n', from) - from));
  return pid ? std::optional(*pid) : std::nullopt;
}

// Processes that appear later get theirs when the symbolizer learns of them.
Status load_unwind_tables(Session& session) {
  const probe::ProbeMaps& maps = session.probe->maps();
  if (maps.unwind_slabs < 0 || !session.options.probe.user_stacks) return {};
  DWELL_ASSIGN(auto memory, unwind::open_bpf_memory({maps.unwind_processes, maps.unwind_mappings,
                                                     maps.unwind_pages, maps.unwind_rules,
                                                     maps.unwind_slabs, maps.python_layouts}));
  session.unwinding.emplace(std::move(memory));
  symbolize::Symbolizer& symbolizer = *session.symbolizer;
  symbolizer.load_unwind_tables(*session.unwinding);
  if (session.options.all) symbolizer.unwind_all_processes();
  for (const uint32_t pid : session.options.pids) symbolizer.unwind_process(pid);
  for (const uint32_t tid : session.options.tids)
    if (const auto pid = process_of(tid)) symbolizer.unwind_process(*pid);
  if (session.command) symbolizer.unwind_process(session.command->pid());
  const uint64_t end = monotonic_ns() + kUnwindPatienceNs;
  while (!symbolizer.settle_unwinding(kUnwindPauseMs) && monotonic_ns() < end)
    if (stop_requested()) break;
  return {};
}

// Stacks that tell of mappings which the tables do not know.
void report_doubts(Session& session) {
  for (const collect::RawStack& stack : session.batch.stacks)
    if (stack.flags & DWELL_STACK_USER &&
        (stack.end == DWELL_WALK_NO_MAPPING || stack.end == DWELL_WALK_NO_TABLES))
      session.symbolizer->doubt_unwinding(stack.process.pid);
}

std::vector<uint32_t> schedstat_pids(const Session& session) {
  std::vector<uint32_t> pids = session.options.pids;
  if (session.command && !session.options.all) pids.push_back(session.command->pid());
  return pids;
}

Status open_window(Session& session) {
  session.recording.before = read_schedstats(schedstat_pids(session));
  DWELL_ASSIGN(const uint64_t start, session.probe->open_window());
  Window& window = session.recording.window;
  window.start_ns = start;
  window.start_unix_ns = clock_ns(CLOCK_REALTIME) + start - monotonic_ns();
  session.epoch_began_ns = start;
  if (!session.command) return {};
  session.recording.command_pid = session.command->pid();
  while (monotonic_ns() <= start) usleep(500);
  return session.command->release();
}

void locate_waiting(Session& session, size_t count) {
  for (; count > 0 && !session.waiting.empty(); --count) {
    session.recording.stacks.add(session.waiting.front(), *session.symbolizer);
    session.waiting.pop_front();
  }
}

// Takes what the probe has sent, and locates new stacks while their processes live.
Status absorb(Session& session, bool swap_epoch) {
  collect::Batch& batch = session.batch;
  DWELL_TRY(session.drain->take_rings(batch));
  if (session.timeline) DWELL_TRY(session.timeline->take());
  if (swap_epoch) {
    DWELL_TRY(session.drain->take_rows(batch));
    // Rows name stacks that were sent before them: take the ring again, so that none is missing.
    DWELL_TRY(session.drain->take_rings(batch));
  }
  report_doubts(session);
  session.symbolizer->poll();
  session.recording.stacks.add_python(batch.stacks, *session.symbolizer);
  if (session.symbolizer->unwinding_changed()) DWELL_TRY(session.probe->rewalk_stacks());
  std::ranges::move(batch.stacks, std::back_inserter(session.waiting));
  locate_waiting(session, kStacksPerRound);
  session.recording.totals.add_rows(batch.rows);
  session.recording.totals.add_threads(batch.threads);
  session.learner->learn(batch.samples);
  for (const auto& sample : batch.samples)
    session.recording.stacks.add_sample(sample, [&](uint64_t address, size_t bytes) {
      return session.probe->read_kernel(address, bytes);
    });
  batch.stacks.clear();
  batch.threads.clear();
  batch.samples.clear();
  batch.rows.clear();
  return {};
}

uint64_t count_losses(const std::vector<dwell_counter_cell>& counters) {
  uint64_t losses = 0;
  for (const collect::CounterMeaning& meaning : collect::counter_meanings())
    if (meaning.is_loss) losses += counters[static_cast<size_t>(meaning.counter)].count;
  return losses;
}

Result<bool> epoch_is_due(Session& session, uint64_t now) {
  DWELL_ASSIGN(const uint64_t inserted, session.drain->rows_inserted());
  const uint64_t used = inserted - session.rows_before_epoch;
  if (used == 0 ||
      (used < session.options.probe.rows / 2 && now < session.epoch_began_ns + kEpochNs))
    return false;
  session.rows_before_epoch = inserted;
  session.epoch_began_ns = now;
  return true;
}

bool targets_have_ended(Session& session) {
  if (session.command) return session.command->try_wait() >= 0;
  if (session.targets_alive.empty() || !session.options.tids.empty()) return false;
  for (const Fd& alive : session.targets_alive) {
    pollfd end = {alive.get(), POLLIN, 0};
    if (poll(&end, 1, 0) == 0) return false;
  }
  return true;
}

// Until the command ends, there are mappings, Python frames or intervals to read, or time is over.
void wait_for_work(const Session& session, uint64_t absorbed_ns, int wait_ms) {
  const int exit_fd = session.command ? session.command->exit_fd() : -1;
  const int timeline_fd = session.timeline ? session.timeline->fd() : -1;
  pollfd work[] = {{exit_fd, POLLIN, 0},
                   {session.symbolizer->events_fd(), POLLIN, 0},
                   {session.probe->maps().python_stacks, POLLIN, 0},
                   {timeline_fd, POLLIN, 0}};
  if (poll(work, std::size(work), wait_ms) <= 0 || !(work[1].revents | work[2].revents)) return;
  const uint64_t now = monotonic_ns();
  if (now < absorbed_ns + kAbsorbPauseNs)
    usleep(static_cast<useconds_t>((absorbed_ns + kAbsorbPauseNs - now) / 1000));
}

Status record_until_stopped(Session& session) {
  Progress progress(session.options.quiet);
  const uint64_t start = session.recording.window.start_ns;
  uint64_t shown_ns = 0, absorbed_ns = 0;
  while (monotonic_ns() <= start) usleep(500);
  // What a command says stands alone.
  if (!session.command) progress.begin(session.options.target_text());
  for (;;) {
    const uint64_t now = monotonic_ns();
    const bool busy = !session.waiting.empty() || session.drain->wants_another_turn();
    uint64_t wait_ms = busy ? 0 : kDrainIntervalMs;
    if (session.options.duration_ns) {
      const uint64_t end = start + *session.options.duration_ns;
      if (now + 1'000'000 >= end) return {};
      wait_ms = std::min<uint64_t>(wait_ms, (end - now) / 1'000'000);
    }
    if (stop_requested() || targets_have_ended(session)) return {};
    wait_for_work(session, absorbed_ns, static_cast<int>(wait_ms));
    absorbed_ns = monotonic_ns();
    DWELL_ASSIGN(const bool swap, epoch_is_due(session, now));
    DWELL_TRY(absorb(session, swap));
    if (progress.wanted() && now >= shown_ns + kProgressNs) {
      DWELL_ASSIGN(const auto counters, session.drain->read_counters());
      progress.show(now > start ? now - start : 0, counters[DWELL_COUNT_SWITCHES].count,
                    count_losses(counters));
      shown_ns = now;
    }
  }
}

Status finish_timeline(Session& session) {
  if (!session.timeline) return {};
  DWELL_TRY(session.timeline->finish());
  session.recording.timeline = {*session.options.probe.timeline_min_ns,
                                session.timeline->take_intervals(), session.timeline->received(),
                                session.timeline->dropped()};
  return {};
}

Status close_window(Session& session) {
  DWELL_ASSIGN(const auto records, session.probe->close_window());
  session.recording.after = read_schedstats(schedstat_pids(session));
  Window& window = session.recording.window;
  window.end_ns = session.probe->window_end_ns();
  window.end_unix_ns = clock_ns(CLOCK_REALTIME) + window.end_ns - monotonic_ns();
  const uint64_t monotonic = monotonic_ns();  // first: the difference must not be negative
  session.recording.boottime_offset_ns = clock_ns(CLOCK_BOOTTIME) - monotonic;
  session.recording.totals.add_threads(records);
  DWELL_TRY(absorb(session, true));  // the epoch in use,
  DWELL_TRY(
      absorb(session, true));  // and the one before, into which a late handler may have written
  locate_waiting(session, session.waiting.size());
  session.recording.stacks.finish(*session.symbolizer);
  DWELL_TRY(finish_timeline(session));
  DWELL_ASSIGN(session.recording.counters, session.drain->read_counters());
  DWELL_ASSIGN(const auto overflow, session.drain->read_overflow());
  session.recording.totals.add_overflow(overflow);
  DWELL_ASSIGN(const auto lost, session.drain->read_lost_threads());
  session.recording.totals.add_lost_threads(lost);
  session.kernel_memory_bytes = session.probe->kernel_memory_bytes();
  if (session.unwinding) session.kernel_memory_bytes += session.unwinding->kernel_bytes();
  return {};
}

Profile describe_machine(const Session& session) {
  Profile facts;
  utsname system = {};
  uname(&system);
  facts.dwell_version = DWELL_VERSION;
  facts.host = system.nodename;
  facts.kernel = system.release;
  facts.cpus = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_ONLN));
  facts.target = session.options.target_text();
  facts.options = session.options.effective();
  facts.warnings = session.probe->notes();
  if (session.timeline)
    std::ranges::move(session.timeline->notes(), std::back_inserter(facts.warnings));
  if (session.unwinding)
    std::ranges::move(session.unwinding->warnings(), std::back_inserter(facts.warnings));
  facts.kernel_memory_bytes = session.kernel_memory_bytes;
  return facts;
}

void add_own_cost(Profile& profile) {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u +
           static_cast<uint64_t>(time.tv_usec) * 1'000u;
  };
  profile.user_memory_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
  profile.recorder_cpu_ns = ns(usage.ru_utime) + ns(usage.ru_stime);
}

// The probe takes some 40 descriptors, and names keep files open. The hard limit stays the user's.
void raise_file_limit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

Result<RecordOutcome> run_record(const RecordOptions& options) {
  Session session;
  session.options = options;
  raise_file_limit();
  if (const std::string reasons = probe::reasons_against(probe::examine_machine());
      !reasons.empty())
    return privilege_error("this machine cannot be recorded:\n  " + reasons);
  DWELL_TRY(check_can_write(options.output));
  // The ids given must exist before anything is started.
  DWELL_TRY(find_targets(options, std::nullopt));
  watch_stop_signals("aborted, nothing was written");
  if (!options.command.empty()) {
    DWELL_ASSIGN(session.command, Command::start(options.command));
  }
  DWELL_TRY(start_probe(session));
  symbolize::Options naming;
  naming.demangle = options.demangle;
  naming.python = options.python;
  naming.unwind_cache = symbolize::default_cache_folder();
  naming.hurried = stop_requested;
  DWELL_ASSIGN(session.symbolizer, symbolize::Symbolizer::create(naming));
  DWELL_TRY(load_unwind_tables(session));
  DWELL_TRY(session.probe->attach());
  DWELL_TRY(open_window(session));
  DWELL_TRY(record_until_stopped(session));
  DWELL_TRY(close_window(session));
  if (session.command && stop_requested()) session.command->forward(SIGTERM);
  const Profile facts = describe_machine(session);
  session.probe.reset();  // detach: the rest costs the machine nothing
  Profile profile = build_profile(session.recording, *session.symbolizer, facts);
  add_own_cost(profile);
  DWELL_TRY(write_dwell_file(options.output, profile));
  return RecordOutcome{profile.threads.size(), session.command ? session.command->try_wait() : 0};
}

}  // namespace dwell::cli
