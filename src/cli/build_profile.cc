#include "cli/build_profile.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "cli/cause.h"
#include "cli/profile_stacks.h"
#include "collect/loss.h"
#include "profile/profile_builder.h"

namespace dwell::cli {
namespace {

std::string_view comm_text(const char (&comm)[DWELL_COMM_BYTES]) {
  return {comm, strnlen(comm, sizeof comm)};
}

class ProfileAssembly {
 public:
  ProfileAssembly(const Recording& recording, symbolize::Symbolizer& symbolizer)
      : recording_(recording), symbolizer_(symbolizer) {}

  Profile run(Profile facts) {
    Profile& target = builder_.facts();
    target.dwell_version = std::move(facts.dwell_version);
    target.host = std::move(facts.host);
    target.kernel = std::move(facts.kernel);
    target.cpus = facts.cpus;
    target.target = std::move(facts.target);
    target.options = std::move(facts.options);
    target.window = recording_.window;
    target.warnings = std::move(facts.warnings);
    target.kernel_memory_bytes = facts.kernel_memory_bytes;
    builder_.reserve(recording_.totals.rows().size(), recording_.stacks.size());
    note_leaders();
    add_threads();
    add_rows();
    add_overflow();
    add_timeline();
    add_losses();
    add_unresolved();
    return std::move(builder_).finish();
  }

 private:
  // The name of a process is its first thread's last name in the window.
  void note_leaders() {
    std::unordered_map<ProcessKey, uint64_t, ProcessKeyHash> latest;
    for (const auto& [id, record] : recording_.totals.threads()) {
      if (!(record.flags & DWELL_THREAD_FIRST)) continue;
      uint64_t& end = latest[process_key(record.process)];
      if (record.end_ns < end) continue;
      end = record.end_ns;
      leader_names_[process_key(record.process)] = std::string(comm_text(record.comm));
    }
  }

  uint32_t add_process(const dwell_thread_record& record) {
    const ProcessKey key = process_key(record.process);
    const auto [at, is_new] = process_ids_.try_emplace(key);
    if (!is_new) return at->second;
    const auto name = leader_names_.find(key);
    const symbolize::ProcessInfo info = symbolizer_.process_info(key);
    Process process;
    process.pid = key.pid;
    process.parent_pid = record.parent_pid;
    process.exec_id = key.exec_id;
    process.start_boottime_ns = key.start_boottime_ns;
    process.comm = builder_.string(name != leader_names_.end() ? std::string_view(name->second)
                                                               : comm_text(record.process_comm));
    process.executable = builder_.string(info.executable);
    process.command_line = builder_.string(info.command_line);
    return at->second = builder_.process(process);
  }

  static ThreadTimes times_of(const dwell_books& books, uint64_t alive_ns, bool has_gap) {
    ThreadTimes times;
    times.alive_ns = alive_ns;
    times.running_ns = books.running_ns;
    times.run_queue_ns = books.run_queue_ns;
    times.blocked_ns = books.blocked_ns;
    times.censored_run_queue_ns = books.censored_run_queue_ns;
    times.censored_blocked_ns = books.censored_blocked_ns;
    times.lost_ns = books.lost_ns;
    times.filtered_ns = books.filtered_ns;
    times.overflow_ns = books.overflow_ns;
    times.intervals = books.intervals;
    times.blocked_intervals = books.blocked_intervals;
    times.filtered_intervals = books.filtered_intervals;
    times.overflow_intervals = books.overflow_intervals;
    if (has_gap && times.residual_ns() > 0)
      times.lost_ns += static_cast<uint64_t>(times.residual_ns());
    return times;
  }

  std::optional<SchedstatDelta> schedstat_of(const dwell_thread_record& record) const {
    const bool whole =
        record.birth_ns == recording_.window.start_ns && record.end_ns == recording_.window.end_ns;
    if (!whole) return std::nullopt;
    return schedstat_between(recording_.before, recording_.after, record.process.pid, record.tid);
  }

  // Threads in the order of their process and number: equal recordings give equal files.
  void add_threads() {
    std::vector<const dwell_thread_record*> records;
    for (const auto& [id, record] : recording_.totals.threads()) records.push_back(&record);
    std::ranges::sort(records, {}, [](const dwell_thread_record* r) {
      return std::tuple(r->process.pid, r->process.start_boottime_ns, r->tid, r->birth_ns,
                        r->thread);
    });
    for (const dwell_thread_record* record : records) add_thread(*record);
    add_folded_thread();
  }

  // One thread stands for all whose record did not fit, and for those that the kernel never lists.
  // Of the latter only the rows are known: so much of their time, and no more, is told.
  void add_folded_thread() {
    const dwell_lost_threads& lost = recording_.totals.lost_threads();
    Thread thread;
    thread.folded = true;
    thread.folded_count = static_cast<uint32_t>(lost.threads);
    thread.times = times_of(lost.books, lost.alive_ns, false);
    if (lost.threads == 0) add_rows_without_record(thread);
    if (thread.folded_count == 0) return;
    thread.process = pseudo_process("(threads without a record)");
    thread.comm = builder_.string("(folded)");
    folded_thread_ = builder_.thread(thread);
  }

  // Time lost by departures that the kernel did not tell, beyond what stands in the records.
  uint64_t untold_ns() const {
    uint64_t in_records = 0;
    for (const auto& [id, record] : recording_.totals.threads()) in_records += record.books.lost_ns;
    const uint64_t all = recording_.counters[DWELL_LOSS_MISSED_SWITCH_OUT].ns;
    return all - std::min(all, in_records);
  }

  void add_rows_without_record(Thread& thread) {
    std::unordered_set<uint64_t> ids;
    for (const auto& [key, row] : recording_.totals.rows()) {
      if (hidden_.contains(key.thread) || thread_ids_.contains(key.thread)) continue;
      ids.insert(key.thread);
      ThreadTimes& times = thread.times;
      (key.censored ? times.censored_blocked_ns : times.blocked_ns) += row.blocked_ns;
      (key.censored ? times.censored_run_queue_ns : times.run_queue_ns) += row.run_queue_ns;
      times.alive_ns += row.blocked_ns + row.run_queue_ns;
      times.intervals += row.count;
      if (key.wait_class < DWELL_CLASS_PREEMPTED) times.blocked_intervals += row.count;
    }
    thread.folded_count = static_cast<uint32_t>(ids.size());
    if (ids.empty()) return;
    thread.times.lost_ns = untold_ns();
    thread.times.alive_ns += thread.times.lost_ns;
    builder_.facts().warnings.push_back(std::to_string(ids.size()) +
                                        " threads switched but are not in the kernel's list of "
                                        "threads: only their waits are known");
  }

  // The recorder's own child before it became the command: not what anybody asked for.
  bool is_before_command(const dwell_thread_record& record) const {
    return record.process.pid == recording_.command_pid && record.ended == DWELL_END_EXECUTED &&
           record.birth_ns == recording_.window.start_ns;
  }

  void add_thread(const dwell_thread_record& record) {
    if (is_before_command(record)) {
      hidden_.insert(record.thread);
      return;
    }
    uint64_t birth = record.birth_ns;
    if (record.flags & DWELL_THREAD_UNSEEN) {
      const uint64_t start = record.start_boottime_ns -
                             std::min(record.start_boottime_ns, recording_.boottime_offset_ns);
      birth = std::max(birth, start);
    }
    if (birth >= record.end_ns) return;
    Thread thread;
    thread.process = add_process(record);
    thread.tid = record.tid;
    thread.start_boottime_ns = record.start_boottime_ns;
    thread.birth_ns = birth;
    thread.end_ns = record.end_ns;
    thread.comm = builder_.string(comm_text(record.comm));
    thread.end = static_cast<ThreadEnd>(record.ended);
    thread.kernel_thread = record.flags & DWELL_THREAD_KERNEL;
    thread.times = times_of(record.books, record.end_ns - birth,
                            record.flags & (DWELL_THREAD_GAP | DWELL_THREAD_UNSEEN));
    thread.schedstat = schedstat_of(record);
    thread_ids_[record.thread] = builder_.thread(thread);
  }

  uint32_t pseudo_process(std::string_view name) {
    Process process;
    process.comm = builder_.string(name);
    return builder_.process(process);
  }

  uint32_t thread_of(uint64_t id) const {
    const auto found = thread_ids_.find(id);
    return found != thread_ids_.end() ? found->second : folded_thread_.value_or(0);
  }

  static void set_values(Row& row, const dwell_row& value) {
    row.count = value.count;
    row.blocked_ns = value.blocked_ns;
    row.run_queue_ns = value.run_queue_ns;
    row.max_ns = value.max_ns;
    std::copy(std::begin(value.histogram), std::end(value.histogram), row.histogram.begin());
  }

  void add_rows() {
    std::unordered_map<uint16_t, StringId> causes;
    for (const auto& [key, value] : recording_.totals.rows()) {
      if (hidden_.contains(key.thread)) continue;
      const auto [cause, is_new] = causes.try_emplace(key.cause);
      if (is_new) cause->second = builder_.string(cause_name(key.cause));
      Row row;
      row.thread = thread_of(key.thread);
      row.stack = stacks_.id_of(key);
      row.cause = cause->second;
      row.wait_class = static_cast<WaitClass>(std::min<int>(key.wait_class, kWaitClassCount - 1));
      row.state = key.state;
      row.censored_left = key.censored & DWELL_CENSORED_LEFT;
      row.censored_right = key.censored & DWELL_CENSORED_RIGHT;
      set_values(row, value);
      builder_.add(row);
    }
  }

  void add_overflow() {
    for (int i = 0; i < DWELL_CLASS_COUNT; ++i) {
      const dwell_row& value = recording_.totals.overflow()[static_cast<size_t>(i)];
      if (value.count == 0) continue;
      if (!overflow_thread_) {
        Thread thread;
        thread.process = pseudo_process("(overflow)");
        thread.comm = builder_.string("(overflow)");
        thread.folded = true;
        overflow_thread_ = builder_.thread(thread);
      }
      Row row;
      row.thread = *overflow_thread_;
      row.stack = builder_.stack(std::vector{builder_.placeholder("[overflow: row map full]")},
                                 false, false);
      row.cause = builder_.string("overflow");
      row.wait_class = static_cast<WaitClass>(i);
      row.overflow = true;
      set_values(row, value);
      builder_.add(row);
    }
  }

  Interval interval_of(const dwell_interval_record& record, uint32_t thread) {
    const dwell_row_key stacks = {.user_stack = record.user_stack,
                                  .kernel_stack = record.kernel_stack,
                                  .thread = record.thread,
                                  .state = record.state,
                                  .cause = record.cause,
                                  .wait_class = record.wait_class,
                                  .censored = record.censored};
    return {
        .thread = thread,
        .stack = stacks_.id_of(stacks),
        .cause = builder_.string(cause_name(record.cause)),
        .wait_class = static_cast<WaitClass>(std::min<int>(record.wait_class, kWaitClassCount - 1)),
        .censored_left = (record.censored & DWELL_CENSORED_LEFT) != 0,
        .censored_right = (record.censored & DWELL_CENSORED_RIGHT) != 0,
        .state = record.state,
        .cpu = record.cpu,
        .start_ns = record.start_ns,
        .blocked_ns = record.blocked_ns,
        .run_queue_ns = record.run_queue_ns};
  }

  void add_timeline() {
    if (!recording_.timeline) return;
    Profile& facts = builder_.facts();
    facts.timeline_min_ns = recording_.timeline->min_ns;
    for (const dwell_interval_record& record : recording_.timeline->intervals) {
      if (hidden_.contains(record.thread)) {
        ++hidden_in_timeline_.count;
        hidden_in_timeline_.ns += record.blocked_ns + record.run_queue_ns;
        continue;
      }
      const auto thread = thread_ids_.find(record.thread);
      if (thread != thread_ids_.end())
        facts.timeline.push_back(interval_of(record, thread->second));
      else if (folded_thread_)
        facts.timeline.push_back(interval_of(record, *folded_thread_));
    }
    std::ranges::stable_sort(facts.timeline, {}, [](const Interval& interval) {
      return std::pair(interval.thread, interval.start_ns);
    });
  }

  // Intervals of the timeline that did not arrive: refused, or taken by another reader of the map.
  dwell_counter_cell missing_in_timeline(const dwell_counter_cell& refused) const {
    const dwell_counter_cell& sent = recording_.counters[DWELL_COUNT_TIMELINE];
    const dwell_counter_cell& received = recording_.timeline->received;
    return {std::max(refused.count, sent.count - std::min(sent.count, received.count)),
            std::max(refused.ns, sent.ns - std::min(sent.ns, received.ns))};
  }

  // What the probe counted, and what did not fit into our own sums.
  dwell_counter_cell counted(dwell_counter counter) const {
    dwell_counter_cell cell = recording_.counters[static_cast<size_t>(counter)];
    dwell_counter_cell dropped = {};
    if (counter == DWELL_COUNT_TIMELINE)
      return {cell.count - hidden_in_timeline_.count, cell.ns - hidden_in_timeline_.ns};
    if (counter == DWELL_LOSS_TIMELINE_RING && recording_.timeline)
      return missing_in_timeline(cell);
    if (counter == DWELL_LOSS_TIMELINE_LIMIT && recording_.timeline)
      return recording_.timeline->dropped;
    if (counter == DWELL_COUNT_PYTHON_UNMATCHED) return {stacks_.unmatched_python(), 0};
    if (counter == DWELL_COUNT_PYTHON_NAMES) return {recording_.stacks.unread_python(), 0};
    if (counter == DWELL_LOSS_ROWS_FULL) dropped = recording_.totals.dropped_rows();
    if (counter == DWELL_LOSS_THREAD_RECORDS) dropped = recording_.totals.dropped_threads();
    return {cell.count + dropped.count, cell.ns + dropped.ns};
  }

  void add_losses() {
    for (const collect::CounterMeaning& meaning : collect::counter_meanings()) {
      const dwell_counter_cell cell = counted(meaning.counter);
      Loss loss;
      loss.name = meaning.name;
      loss.meaning = meaning.meaning;
      loss.count = cell.count;
      if (meaning.has_ns) loss.ns = cell.ns;
      loss.is_loss = meaning.is_loss;
      builder_.facts().losses.push_back(std::move(loss));
    }
  }

  void add_unresolved() {
    for (const symbolize::Unresolved& unresolved : symbolizer_.unresolved()) {
      builder_.facts().unresolved.push_back({stacks_.module_of(unresolved.object),
                                             unresolved.frames, unresolved.reason,
                                             unresolved.remedy});
    }
    for (const std::string& warning : symbolizer_.warnings())
      builder_.facts().warnings.push_back(warning);
  }

  const Recording& recording_;
  symbolize::Symbolizer& symbolizer_;
  ProfileBuilder builder_;
  ProfileStacks stacks_{recording_.stacks, symbolizer_, builder_};
  std::unordered_map<ProcessKey, std::string, ProcessKeyHash> leader_names_;
  std::unordered_map<ProcessKey, uint32_t, ProcessKeyHash> process_ids_;
  std::unordered_map<uint64_t, uint32_t> thread_ids_;
  std::unordered_set<uint64_t> hidden_;
  dwell_counter_cell hidden_in_timeline_ = {};
  std::optional<uint32_t> folded_thread_;
  std::optional<uint32_t> overflow_thread_;
};

}  // namespace

Profile build_profile(const Recording& recording, symbolize::Symbolizer& symbolizer,
                      Profile facts) {
  return ProfileAssembly(recording, symbolizer).run(std::move(facts));
}

}  // namespace dwell::cli
