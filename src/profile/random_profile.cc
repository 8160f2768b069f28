#include "profile/random_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "profile/profile_builder.h"

namespace dwell {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

class Maker {
 public:
  explicit Maker(const RandomProfileOptions& options) : options_(options), random_(options.seed) {
    if (options.hostile_names) hostile_ = hostile_names();
    builder_.reserve(options.rows, options.stacks);
  }

  Profile make() {
    make_facts();
    make_frames();
    make_stacks();
    make_threads();
    std::vector<Row> rows = make_rows();
    balance_books(rows);
    for (const Row& row : rows) builder_.add(row);
    make_timeline(rows);
    return std::move(builder_).finish();
  }

 private:
  uint64_t below(uint64_t limit) { return limit == 0 ? 0 : random_() % limit; }
  bool one_in(uint64_t n) { return below(n) == 0; }

  StringId name(const char* prefix, size_t i) {
    if (!hostile_.empty() && one_in(2)) return builder_.string(hostile_[below(hostile_.size())]);
    return builder_.string(fmt::format("{}{}", prefix, i));
  }

  void make_facts();
  void make_frames();
  void make_stacks();
  void make_threads();
  std::vector<Row> make_rows();
  void balance_books(const std::vector<Row>& rows);
  void make_timeline(const std::vector<Row>& rows);

  const RandomProfileOptions& options_;
  std::mt19937_64 random_;
  std::vector<std::string> hostile_;
  ProfileBuilder builder_;
  std::vector<uint32_t> frames_;
  std::vector<uint32_t> stacks_;
};

void Maker::make_facts() {
  Profile& facts = builder_.facts();
  facts.dwell_version = "0.1.0";
  facts.host = "reef";
  facts.kernel = "6.18.5";
  facts.cpus = 2;
  facts.target = hostile_.empty() ? "-p 1234" : "-- " + hostile_.front();
  facts.options = {"min=10ms", "max=1s"};
  facts.window = {100 * kSecond, 140 * kSecond, 1'796'000'000 * kSecond + 123'456'789,
                  1'796'000'040 * kSecond + 123'456'789};
  facts.losses = {
      {"rows_full", "The table of rows was full; raise --rows.", 3, 1'500'000, true},
      {"user_stacks_full", "The store of user stacks was full; raise --stacks.", 0, 0, true},
      {"early_wakeups", "Woken before the switch-out; counted as run-queue time.", 12, std::nullopt,
       false}};
  facts.warnings = {"kernel.kptr_restrict is 2: kernel frames have no names; set it to 1"};
  facts.kernel_memory_bytes = 64 << 20;
  facts.user_memory_bytes = 32 << 20;
  facts.recorder_cpu_ns = 120'000'000;
}

void Maker::make_frames() {
  const uint32_t unknown = builder_.module("", "", ModuleKind::kUnknown);
  const uint32_t kernel = builder_.module("[kernel]", "", ModuleKind::kKernel);
  std::vector<uint32_t> user = {builder_.module("[anon]", "", ModuleKind::kAnonymous),
                                builder_.module("[jit]", "", ModuleKind::kJit)};
  for (size_t i = 0; i < 8; ++i) {
    const std::string path = builder_.so_far().text(name("/usr/lib/lib", i));
    user.push_back(builder_.module(path, fmt::format("{:040x}", i + 1), ModuleKind::kFile));
  }
  for (size_t i = 0; i < options_.frames; ++i) {
    Frame frame{.function = one_in(9) ? 0 : name("function_number_", i),
                .symbol = one_in(3) ? name("_Z3sym", i) : 0,
                .module = user[below(user.size())],
                .address = 0x1000 + i * 16,
                .offset = below(4096)};
    frame.how = frame.function == 0 ? Resolution::kNone : Resolution::kSymtab;
    if (one_in(8) && frame.function != 0) {
      frame.how = Resolution::kPython;
      frame.line = static_cast<uint32_t>(below(1000));
      frame.file = name("/srv/app/module.py", i);
    }
    if (one_in(4)) {
      frame.line = frame.file = 0;
      frame.kind = FrameKind::kKernel;
      frame.module = kernel;
      frame.how = Resolution::kKallsyms;
      frame.address |= 0xffffffff80000000;
    }
    frames_.push_back(builder_.frame(frame));
  }
  frames_.push_back(builder_.placeholder("[user stack lost: store full]"));
  builder_.facts().unresolved = {
      {unknown, 7, "no mapping holds the address", "start the recording before the process"}};
}

void Maker::make_stacks() {
  stacks_.push_back(builder_.stack({}, false, false));
  while (stacks_.size() < options_.stacks) {
    std::vector<uint32_t> frames;
    const size_t depth = 1 + below(options_.depth_max);
    for (size_t i = 0; i < depth; ++i) frames.push_back(frames_[below(frames_.size())]);
    std::ranges::partition(frames, [&](uint32_t frame) {  // kernel frames are the leaves
      return builder_.so_far().frames[frame].kind == FrameKind::kKernel;
    });
    const Walk walk{static_cast<WalkEnd>(below(kWalkEndCount)), {random_(), random_()}};
    stacks_.push_back(builder_.stack(frames, one_in(2), one_in(10), walk));
  }
}

void Maker::make_threads() {
  for (size_t i = 0; i < std::max<size_t>(options_.processes, 1); ++i) {
    Process process{.pid = static_cast<uint32_t>(1000 + i),
                    .parent_pid = 1,
                    .exec_id = static_cast<uint32_t>(below(3)),
                    .start_boottime_ns = below(100) * kSecond};
    process.comm = name("process", i);
    process.executable = name("/usr/bin/program", i);
    process.command_line = name("program --number ", i);
    builder_.process(process);
  }
  for (size_t i = 0; i < std::max<size_t>(options_.threads, 1); ++i) {
    Thread thread{.process = static_cast<uint32_t>(i % builder_.so_far().processes.size()),
                  .tid = static_cast<uint32_t>(1000 + i),
                  .start_boottime_ns = below(100) * kSecond,
                  .birth_ns = 100 * kSecond,
                  .end_ns = 140 * kSecond,
                  .comm = name("worker-", i),
                  .end = static_cast<ThreadEnd>(below(4)),
                  .kernel_thread = one_in(5),
                  .times = {},
                  .schedstat = std::nullopt};
    if (i > 0 && one_in(20)) {
      thread.folded = true;
      thread.folded_count = 5;
      thread.tid = 0;
    }
    builder_.thread(thread);
  }
}

std::vector<Row> Maker::make_rows() {
  static constexpr const char* kCauses[] = {"futex", "epoll_wait", "page fault", "preempted",
                                            "read"};
  std::vector<Row> rows(options_.rows);
  for (Row& row : rows) {
    row.thread = static_cast<uint32_t>(below(builder_.so_far().threads.size()));
    row.stack = stacks_[below(stacks_.size())];
    row.cause = one_in(20) ? name("cause", 1) : builder_.string(kCauses[below(5)]);
    row.wait_class = static_cast<WaitClass>(1 + below(kWaitClassCount - 1));
    row.state = static_cast<uint32_t>(below(4));
    row.censored_left = one_in(30);
    row.censored_right = one_in(30);
    row.count = 1 + below(1000);
    if (is_blocked_class(row.wait_class)) row.blocked_ns = row.count * below(5'000'000);
    row.run_queue_ns = row.count * below(20'000);
    row.max_ns = std::max<uint64_t>(row.total_ns() / row.count, below(row.total_ns() + 1));
    row.histogram[10 + below(5)] = static_cast<uint32_t>(row.count);
  }
  return rows;
}

void Maker::make_timeline(const std::vector<Row>& rows) {
  if (options_.intervals == 0 || rows.empty()) return;
  Profile& facts = builder_.facts();
  facts.timeline_min_ns = below(2) * 1'000'000;
  for (size_t i = 0; i < options_.intervals; ++i) {
    const Row& row = rows[below(rows.size())];
    facts.timeline.push_back({.thread = row.thread,
                              .stack = row.stack,
                              .cause = row.cause,
                              .wait_class = row.wait_class,
                              .censored_left = row.censored_left,
                              .censored_right = row.censored_right,
                              .state = row.state,
                              .cpu = static_cast<uint32_t>(below(2)),
                              .start_ns = 100 * kSecond + below(30 * kSecond),
                              .blocked_ns = below(kSecond),
                              .run_queue_ns = below(kSecond)});
  }
  std::ranges::sort(facts.timeline, {}, [](const Interval& interval) {
    return std::pair(interval.thread, interval.start_ns);
  });
}

void Maker::balance_books(const std::vector<Row>& rows) {
  std::vector<Thread>& threads = builder_.facts().threads;
  for (const Row& row : rows) {
    ThreadTimes& times = threads[row.thread].times;
    const bool censored = row.censored_left || row.censored_right;
    (censored ? times.censored_blocked_ns : times.blocked_ns) += row.blocked_ns;
    (censored ? times.censored_run_queue_ns : times.run_queue_ns) += row.run_queue_ns;
    times.intervals += row.count;
    times.blocked_intervals += is_blocked_class(row.wait_class) ? row.count : 0;
  }
  for (Thread& thread : threads) {
    ThreadTimes& times = thread.times;
    times.filtered_ns = below(1'000'000);
    times.filtered_intervals = below(10);
    times.blocked_ns += times.filtered_ns;
    times.intervals += times.filtered_intervals;
    times.running_ns = below(2 * kSecond);
    times.lost_ns = one_in(4) ? below(kSecond) : 0;
    times.alive_ns = times.running_ns + times.off_cpu_ns() + times.lost_ns;
    if (!one_in(3))
      thread.schedstat = {times.running_ns + below(1'000'000),
                          times.run_queue_ns + times.censored_run_queue_ns,
                          times.alive_ns + below(1'000'000)};
  }
}

}  // namespace

Profile random_profile(const RandomProfileOptions& options) { return Maker(options).make(); }

std::vector<std::string> hostile_names() {
  return {
      "beta;x y",
      "two\nlines\tand a tab",
      "\"quoted\" 'twice' \\ and back",
      "</script><script>alert(1)</script><!--",
      "\x1b[31mred\x1b]0;title\x07",
      std::string("nul\0inside", 10),
      "\xff\xfe\xc0\x80\xed\xa0\x80",
      "\xe2\x82",
      "trailing digits 12",
      "trailing decimals 1.5",
      "  blanks around  ",
      " ",
      "",
      "#comment",
      "-",
      "12345",
      "name 7 8",
      "\x7f\xc2\x9b",
      "\xe2\x80\xae right to left \xf0\x9f\xa6\x86",
      "a(b, std::vector<int>) [clone .isra.0]",
      "@DWELL_DATA@",
      std::string(255, 'n'),
      std::string(1 << 20, 'M'),
  };
}

}  // namespace dwell
