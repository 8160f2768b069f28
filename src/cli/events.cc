#include "cli/events.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/text.h"
#include "cli/event_lines.h"
#include "cli/find_event_array.h"
#include "cli/line_output.h"
#include "cli/stop_signal.h"
#include "event_array/cpu_list.h"
#include "event_array/event_session.h"
#include "event_array/kernel_event_array.h"

namespace dwell::cli {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kLookAround{100};  // how late a stop, or a reader that left, may be seen
constexpr std::chrono::seconds kRateInterval{1};
// Records handed out before the output is flushed and the stop request looked at.
constexpr uint64_t kRecordsPerPass = 4096;

class EventsReader {
 public:
  explicit EventsReader(const EventsOptions& options)
      : options_(options),
        format_(options.json ? LineFormat::kJson : LineFormat::kText),
        output_(STDOUT_FILENO) {}

  Status open();
  Status read_until_over();
  Status finish();

 private:
  Verdict take(const Event& event);
  void warn() const;
  bool over();
  Status print_rate();
  std::vector<CpuStats> cpu_stats();
  // Lines of their own between records; after the last record wanted nothing is shown any more.
  bool shows_lines() { return !options_.rate && !enough() && !output_.ended(); }
  bool enough() const { return options_.count && shown_ >= *options_.count; }
  void note(Status status) {
    if (result_ && !status) result_ = std::move(status);
  }

  const EventsOptions& options_;
  LineFormat format_;
  LineOutput output_;
  std::unique_ptr<KernelEventArray> array_;
  std::unique_ptr<EventSession> session_;
  Clock::time_point start_;
  Clock::time_point rate_since_;
  std::vector<CpuStats> rate_before_;
  uint64_t shown_ = 0;
  Status result_;  // the first failure of the output
};

Status EventsReader::open() {
  DWELL_ASSIGN(const Fd map, find_event_array(options_));
  KernelEventArrayOptions array;
  array.size.bytes_per_cpu = options_.ring_bytes;
  array.shrink_to_fit = true;
  array.timestamps = true;
  array.wait.return_on_signal = true;
  auto opened = KernelEventArray::open(map.get(), array);
  if (!opened) return std::unexpected(explain_refusal(opened.error()));
  array_ = std::move(*opened);
  SessionCallbacks callbacks;
  callbacks.on_event = [this](const Event& event) { return take(event); };
  callbacks.on_lost = [this](uint32_t cpu, uint64_t lost) {
    if (shows_lines()) append_lost(output_.buffer(), format_, cpu, lost);
  };
  callbacks.on_trouble = [this](uint32_t cpu, Trouble what, uint64_t value) {
    if (shows_lines()) append_trouble(output_.buffer(), format_, cpu, what, value);
  };
  SessionOptions session;
  session.ordered = !options_.rate;
  session.budget.max_records = kRecordsPerPass;
  DWELL_ASSIGN(session_, EventSession::create(*array_, std::move(callbacks), session));
  warn();
  start_ = rate_since_ = Clock::now();
  rate_before_ = cpu_stats();
  return {};
}

void EventsReader::warn() const {
  const BpfMapInfo& map = array_->map();
  fmt::print(stderr,
             "dwell: the slots of perf event array '{}' (id {}, {} slots) are taken over: no other "
             "reader gets its records from now on, nor afterwards, because the slots are left "
             "empty\n",
             printable(map.name), map.id, map.max_entries);
  for (const std::string& warning : array_->report().warnings)
    fmt::print(stderr, "dwell: {}\n", warning);
  if (const uint64_t bytes = array_->report().ring_bytes; bytes < options_.ring_bytes)
    fmt::print(stderr,
               "dwell: locked memory is short, so that each ring has {} only; raise ulimit -l or "
               "kernel.perf_event_mlock_kb\n",
               format_bytes(bytes));
}

Verdict EventsReader::take(const Event& event) {
  if (options_.rate) {
    ++shown_;
    return Verdict::kContinue;
  }
  if (enough() || output_.ended()) return Verdict::kDropped;
  append_event(output_.buffer(), format_, event);
  note(output_.line_done());
  ++shown_;
  return Verdict::kContinue;
}

bool EventsReader::over() {
  const bool late = options_.duration_ns &&
                    Clock::now() - start_ >= std::chrono::nanoseconds(*options_.duration_ns);
  return late || enough() || stop_requested() || output_.ended() || !result_;
}

std::vector<CpuStats> EventsReader::cpu_stats() {
  std::vector<CpuStats> list;
  for (uint32_t cpu = 0; cpu < array_->slots(); ++cpu)
    if (array_->has_ring(cpu)) list.push_back({cpu, array_->stats(cpu)});
  return list;
}

Status EventsReader::print_rate() {
  const auto now = Clock::now();
  if (!options_.rate || now - rate_since_ < kRateInterval) return {};
  std::vector<CpuStats> stats = cpu_stats();
  // A CPU that came up in between has no rate yet.
  if (stats.size() == rate_before_.size())
    append_rate(output_.buffer(), format_, std::chrono::duration<double>(now - rate_since_).count(),
                rate_before_, stats);
  rate_before_ = std::move(stats);
  rate_since_ = now;
  return output_.flush();
}

Status EventsReader::read_until_over() {
  while (!over()) {
    DWELL_ASSIGN([[maybe_unused]] const PollResult polled, session_->poll(kLookAround));
    note(output_.flush());
    note(print_rate());
  }
  return {};
}

// After this the program's outputs fail, so that the rings end: what they hold is taken, and what
// was received, not shown and lost is all that the program ever output.
Status EventsReader::finish() {
  DWELL_TRY(array_->detach());
  // An output that had found its ring before may still be under way.
  std::this_thread::sleep_for(milliseconds(1));
  while (array_->has_data()) session_->consume();
  session_->drain_order();
  std::string text;
  std::string& out = format_ == LineFormat::kJson ? output_.buffer() : text;
  append_statistics(out, format_, session_->stats(), cpu_stats());
  note(output_.flush());
  if (!text.empty()) fmt::print(stderr, "{}", text);
  return result_;
}

Status list_all(const EventsOptions& options) {
  DWELL_ASSIGN(const std::vector<BpfMapInfo> arrays, list_event_arrays());
  LineOutput output(STDOUT_FILENO);
  for (const BpfMapInfo& map : arrays) {
    append_array(output.buffer(), options.json ? LineFormat::kJson : LineFormat::kText, map);
    DWELL_TRY(output.line_done());
  }
  return output.flush();
}

}  // namespace

Status run_events(const EventsOptions& options) {
  watch_stop_signals("aborted; the slots of the map are left empty");
  if (options.list) return list_all(options);
  EventsReader reader(options);
  DWELL_TRY(reader.open());
  DWELL_TRY(reader.read_until_over());
  return reader.finish();
}

}  // namespace dwell::cli
