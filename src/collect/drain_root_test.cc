// Rows, stacks and records of ended threads, drained from the probe on the running kernel, against
// the books of the same threads.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <chrono>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "collect/drain.h"
#include "collect/totals.h"
#include "probe/child_at_work.h"
#include "probe/doctor.h"
#include "probe/learner.h"
#include "probe/scheduler_code.h"

namespace dwell::collect {
namespace {

using probe::ChildAtWork;
using probe::nap;
using probe::ProbeOptions;

struct Recorded {
  Totals totals;
  std::set<uint64_t> stacks;
  std::vector<dwell_counter_cell> counters;
  uint64_t window_ns = 0;

  uint64_t count(dwell_counter counter) const { return counters[counter].count; }
  // Lives of a thread.
  std::vector<dwell_thread_record> lives(uint32_t tid) const {
    std::vector<dwell_thread_record> found;
    for (const auto& [id, record] : totals.threads())
      if (record.tid == tid) found.push_back(record);
    return found;
  }
};

uint64_t off_cpu_ns(const dwell_books& books) {
  return books.run_queue_ns + books.blocked_ns + books.censored_run_queue_ns +
         books.censored_blocked_ns;
}

// One recording: what src/cli/record.cc does, in small.
class Recorder {
 public:
  Recorder(ProbeOptions options, const std::vector<uint32_t>& pids)
      : text_(probe::find_scheduler_code().text()), probe_(load(options)) {
    for (const uint32_t pid : pids) EXPECT_TRUE(probe_.add_target(*probe::find_process(pid)));
    EXPECT_TRUE(probe_.attach());
    EXPECT_TRUE(probe_.open_window());
    nap(3'000'000);
  }

  void take(bool rows) {
    Batch batch;
    EXPECT_TRUE(drain_.take_rings(batch));
    if (rows) {
      EXPECT_TRUE(drain_.take_rows(batch));
      EXPECT_TRUE(drain_.take_rings(batch));
    }
    learner_.learn(batch.samples);
    for (const RawStack& stack : batch.stacks) {
      EXPECT_TRUE(recorded_.stacks.insert(stack.hash).second || sent_again_) << "sent twice";
      EXPECT_FALSE(stack.ips.empty());
    }
    recorded_.totals.add_rows(batch.rows);
    recorded_.totals.add_threads(batch.threads);
  }

  Recorded finish() {
    const auto records = probe_.close_window();
    EXPECT_TRUE(records) << records.error().message;
    recorded_.totals.add_threads(*records);
    take(true);
    take(true);
    recorded_.counters = *drain_.read_counters();
    recorded_.totals.add_overflow(*drain_.read_overflow());
    recorded_.totals.add_lost_threads(*drain_.read_lost_threads());
    recorded_.window_ns = probe_.window_end_ns() - probe_.window_start_ns();
    EXPECT_EQ(*drain_.rows_inserted(), recorded_.count(DWELL_COUNT_ROWS_INSERTED));
    return std::move(recorded_);
  }

 private:
  probe::Probe load(ProbeOptions& options) {
    options.sched_text_start = text_.start;
    options.sched_text_end = text_.end;
    sent_again_ = options.stack_ring_bytes < 65536;
    auto loaded = probe::Probe::load(options);
    if (!loaded) ADD_FAILURE() << loaded.error().message;
    return std::move(loaded).value();
  }

  bool sent_again_ = false;  // a full ring has the probe forget what it sent
  probe::SchedulerText text_;
  probe::Probe probe_;
  Drain drain_ = Drain::create(probe_.maps()).value();
  probe::SignatureLearner learner_{probe::insert_into_map(probe_.maps().signatures), text_};
  Recorded recorded_;
};

// Of each thread: what the books say was off the CPU, less what was filtered, is in its rows. What
// did not fit into them is in the overflow.
void expect_rows_to_match_books(const Recorded& recorded, const std::string& label) {
  std::map<uint64_t, uint64_t> row_ns, row_count;
  for (const auto& [key, row] : recorded.totals.rows()) {
    row_ns[key.thread] += row.blocked_ns + row.run_queue_ns;
    row_count[key.thread] += row.count;
    uint64_t bucketed = 0;
    for (const uint32_t count : row.histogram) bucketed += count;
    EXPECT_EQ(bucketed, row.count) << label;
  }
  uint64_t overflow_ns = 0, booked_overflow_ns = 0;
  for (const dwell_row& row : recorded.totals.overflow())
    overflow_ns += row.blocked_ns + row.run_queue_ns;
  for (const auto& [id, record] : recorded.totals.threads()) {
    const dwell_books& books = record.books;
    EXPECT_EQ(row_ns[id], off_cpu_ns(books) - books.filtered_ns - books.overflow_ns)
        << label << ": thread " << record.tid << " " << record.comm;
    EXPECT_EQ(row_count[id], books.intervals - books.filtered_intervals - books.overflow_intervals)
        << label;
    EXPECT_EQ(books.running_ns + off_cpu_ns(books) + books.lost_ns, record.end_ns - record.birth_ns)
        << label << ": thread " << record.tid;
    booked_overflow_ns += books.overflow_ns;
  }
  EXPECT_EQ(overflow_ns, booked_overflow_ns) << label;
}

void nap_ten_times() {
  for (int i = 0; i < 10; ++i) nap(1'000'000);
}

class DrainRootTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reasons = probe::reasons_against(probe::examine_machine());
    if (!reasons.empty()) GTEST_SKIP() << "this machine cannot be recorded: " << reasons;
  }
  static Recorded record(const ProbeOptions& options, ChildAtWork& child) {
    Recorder recorder(options, {child.pid()});
    child.work();
    return recorder.finish();
  }
};

TEST_F(DrainRootTest, RowsSayWhatTheBooksSayWhateverTheOptions) {
  for (int bits = 0; bits < 32; ++bits) {
    ProbeOptions options;
    options.user_stacks = bits & 1;
    options.kernel_stacks = bits & 2;
    options.signatures = bits & 4;
    options.runnable_kernel_stacks = bits & 8;
    options.raw = bits & 16;
    ChildAtWork child(nap_ten_times);
    const Recorded recorded = record(options, child);
    expect_rows_to_match_books(recorded, fmt::format("options {:05b}", bits));
    for (const auto& [key, row] : recorded.totals.rows()) {
      EXPECT_TRUE(options.user_stacks || key.user_stack < DWELL_STACK_FIRST);
      EXPECT_TRUE(options.kernel_stacks || key.kernel_stack < DWELL_STACK_FIRST);
      for (const uint64_t stack : {key.user_stack, key.kernel_stack})
        EXPECT_TRUE(stack < DWELL_STACK_FIRST || recorded.stacks.contains(stack)) << "not sent";
    }
  }
}

TEST_F(DrainRootTest, MergesEpochsOfTheSameWaits) {
  ChildAtWork child(nap_ten_times);
  Recorder recorder({}, {child.pid()});
  for (int epoch = 0; epoch < 5; ++epoch) {
    child.work();
    recorder.take(true);
  }
  const Recorded recorded = recorder.finish();
  expect_rows_to_match_books(recorded, "epochs");
  uint64_t naps = 0, rows = 0;
  for (const auto& [key, row] : recorded.totals.rows())
    if (key.cause == 230 && key.wait_class == DWELL_CLASS_INTERRUPTIBLE) naps += row.count, rows++;
  EXPECT_EQ(naps, 50u) << "clock_nanosleep";
  EXPECT_EQ(rows, 1u) << "all by the same way";
}

TEST_F(DrainRootTest, ChargesWhatFindsNoRoomToTheOverflow) {
  ProbeOptions options;
  options.rows = 1;
  ChildAtWork child(nap_ten_times);
  const Recorded recorded = record(options, child);
  expect_rows_to_match_books(recorded, "one row");
  EXPECT_GT(recorded.count(DWELL_LOSS_ROWS_FULL), 0u);
  uint64_t overflow_ns = 0;
  for (const dwell_row& row : recorded.totals.overflow())
    overflow_ns += row.blocked_ns + row.run_queue_ns;
  EXPECT_EQ(recorded.counters[DWELL_LOSS_ROWS_FULL].ns, overflow_ns);
}

TEST_F(DrainRootTest, PutsAPlaceholderWhereTheStoreIsFull) {
  ProbeOptions options;
  options.stacks = 1;
  ChildAtWork child(nap_ten_times);
  const Recorded recorded = record(options, child);
  expect_rows_to_match_books(recorded, "one stack");
  EXPECT_LE(recorded.stacks.size(), 1u);
  EXPECT_GT(
      recorded.count(DWELL_LOSS_USER_STACKS_FULL) + recorded.count(DWELL_LOSS_KERNEL_STACKS_FULL),
      0u);
  uint64_t placeholders = 0;
  for (const auto& [key, row] : recorded.totals.rows())
    placeholders +=
        key.user_stack == DWELL_STACK_LOST_FULL || key.kernel_stack == DWELL_STACK_LOST_FULL;
  EXPECT_GT(placeholders, 0u);
}

// What a child that naps once saw of its nap by its own clocks.
struct NapSeen {
  uint64_t wall_ns, cpu_ns;
  long left_the_cpu;  // voluntarily
};

constexpr size_t kChildren = 100;
constexpr uint64_t kTakenNs = 50'000;  // half a nap: one that is not in the books shows

// Of the n-th child, in memory that the children share with the test.
class SharedNaps {
 public:
  SharedNaps()
      : seen_(
            static_cast<NapSeen*>(mmap(nullptr, kChildren * sizeof(NapSeen), PROT_READ | PROT_WRITE,
                                       MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  SharedNaps(const SharedNaps&) = delete;
  SharedNaps& operator=(const SharedNaps&) = delete;
  ~SharedNaps() { munmap(seen_, kChildren * sizeof(NapSeen)); }
  NapSeen& operator[](size_t child) { return seen_[child]; }

 private:
  NapSeen* seen_;
};

uint64_t read_clock(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

long times_left() {
  rusage usage = {};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

NapSeen nap_and_see() {
  const long left = times_left();
  const uint64_t cpu_ns = read_clock(CLOCK_THREAD_CPUTIME_ID);
  const uint64_t start_ns = read_clock(CLOCK_MONOTONIC);
  nap(100'000);
  const uint64_t end_ns = read_clock(CLOCK_MONOTONIC);
  return {end_ns - start_ns, read_clock(CLOCK_THREAD_CPUTIME_ID) - cpu_ns, times_left() - left};
}

void fork_a_hundred(SharedNaps& naps) {
  for (size_t i = 0; i < kChildren; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      naps[i] = nap_and_see();
      _exit(0);
    }
    waitpid(pid, nullptr, 0);
  }
}

TEST_F(DrainRootTest, TakesTheBooksOfThreadsThatHaveEnded) {
  SharedNaps naps;
  ChildAtWork child([&] { fork_a_hundred(naps); });
  const Recorded recorded = record({}, child);
  expect_rows_to_match_books(recorded, "children");
  ASSERT_EQ(recorded.totals.threads().size(), kChildren + 1);
  std::map<uint64_t, dwell_thread_record> by_birth;
  for (const auto& [id, record] : recorded.totals.threads())
    if (record.tid != child.pid()) by_birth[record.birth_ns] = record;
  ASSERT_EQ(by_birth.size(), kChildren);
  size_t i = 0;
  for (const auto& [birth, record] : by_birth) {
    const NapSeen& seen = naps[i++];
    EXPECT_EQ(record.ended, DWELL_END_EXITED);
    EXPECT_EQ(record.parent_pid, child.pid());
    EXPECT_EQ(record.flags, DWELL_THREAD_BORN | DWELL_THREAD_FIRST);
    EXPECT_GE(record.end_ns - record.birth_ns, seen.wall_ns);
    // The CPU clock is read around the other. It leaves out what interrupts and the host took.
    EXPECT_GE(off_cpu_ns(record.books) + record.books.lost_ns + seen.cpu_ns + kTakenNs,
              seen.wall_ns);
    if (record.books.lost_ns == 0) {
      EXPECT_GE(record.books.blocked_intervals, static_cast<uint64_t>(seen.left_the_cpu));
    }
  }
}

TEST_F(DrainRootTest, FoldsThreadsWhoseRecordsFindNoRoom) {
  ProbeOptions options;
  options.thread_ring_bytes = 4096;
  SharedNaps naps;
  ChildAtWork child([&] { fork_a_hundred(naps); });
  const Recorded recorded = record(options, child);
  const dwell_lost_threads& lost = recorded.totals.lost_threads();
  EXPECT_EQ(recorded.totals.threads().size() + lost.threads, 101u);
  EXPECT_GT(lost.threads, 50u);
  EXPECT_EQ(lost.threads, recorded.count(DWELL_LOSS_THREAD_RECORDS));
  EXPECT_EQ(lost.alive_ns, recorded.counters[DWELL_LOSS_THREAD_RECORDS].ns);
  EXPECT_EQ(lost.books.running_ns + off_cpu_ns(lost.books) + lost.books.lost_ns, lost.alive_ns);
}

TEST_F(DrainRootTest, LeavesChildrenOutIfTheyAreNotToBeFollowed) {
  ProbeOptions options;
  options.follow = false;
  SharedNaps naps;
  ChildAtWork child([&] { fork_a_hundred(naps); });
  const Recorded recorded = record(options, child);
  EXPECT_EQ(recorded.totals.threads().size(), 1u);
  expect_rows_to_match_books(recorded, "no follow");
}

TEST_F(DrainRootTest, BeginsALifeWithEachName) {
  ChildAtWork child([] {
    for (const char* name : {"first", "second", "third"}) {
      prctl(PR_SET_NAME, name);
      nap(1'000'000);
    }
  });
  ProbeOptions options;
  options.renames_max = 2;
  const Recorded recorded = record(options, child);
  expect_rows_to_match_books(recorded, "renamed");
  std::map<std::string, int> names;
  uint64_t alive_ns = 0;
  for (const dwell_thread_record& life : recorded.lives(child.pid())) {
    names[life.comm]++;
    alive_ns += life.end_ns - life.birth_ns;
  }
  EXPECT_EQ(names.size(), 3u) << "two new lives; the third name came too late for one";
  EXPECT_EQ(names["first"], 1);
  EXPECT_EQ(names["third"], 1) << "but is the last name of the last life";
  EXPECT_EQ(alive_ns, recorded.window_ns) << "the lives follow each other without a gap";
}

TEST_F(DrainRootTest, KeepsOnlyWholeIntervalsOfTheLengthsAskedFor) {
  ChildAtWork child([] {
    for (int i = 0; i < 5; ++i) {
      nap(100'000);
      nap(40'000'000);
    }
  });
  ProbeOptions options;
  options.min_ns = 30'000'000;
  const Recorded longer = record(options, child);
  expect_rows_to_match_books(longer, "min");
  uint64_t naps = 0;
  for (const auto& [key, row] : longer.totals.rows()) {
    if (key.censored == 0) naps += row.count;
    EXPECT_TRUE(key.censored || row.max_ns >= options.min_ns);
  }
  EXPECT_GE(naps, 5u);

  options.min_ns = 0;
  options.max_ns = 20'000'000;
  const Recorded shorter = record(options, child);
  expect_rows_to_match_books(shorter, "max");
  for (const auto& [key, row] : shorter.totals.rows()) EXPECT_LE(row.max_ns, options.max_ns);
  const dwell_books& books = shorter.lives(child.pid()).at(0).books;
  EXPECT_GE(books.filtered_ns, 5 * 40'000'000u);
}

TEST_F(DrainRootTest, KeepsOnlyTheClassesAndStatesAskedFor) {
  ChildAtWork child([] {
    nap_ten_times();
    for (int i = 0; i < 1000; ++i) sched_yield();
  });
  ProbeOptions classes;
  classes.class_mask = 1u << DWELL_CLASS_INTERRUPTIBLE;
  const Recorded by_class = record(classes, child);
  expect_rows_to_match_books(by_class, "class");
  EXPECT_FALSE(by_class.totals.rows().empty());
  for (const auto& [key, row] : by_class.totals.rows())
    EXPECT_EQ(key.wait_class, DWELL_CLASS_INTERRUPTIBLE);

  ProbeOptions states;
  states.state_mask = 1u << 31;  // running: lost the CPU
  const Recorded by_state = record(states, child);
  expect_rows_to_match_books(by_state, "state");
  for (const auto& [key, row] : by_state.totals.rows()) EXPECT_EQ(key.state, 0u);
}

// Two processes that wake each other up, as fast as they can.
void ping_pong(int rounds) {
  int there[2], back[2];
  if (pipe(there) != 0 || pipe(back) != 0) _exit(1);
  char ball = 'o';
  const pid_t partner = fork();
  if (partner == 0) {
    close(there[1]);
    while (read(there[0], &ball, 1) == 1 && write(back[1], &ball, 1) == 1) continue;
    _exit(0);
  }
  for (int i = 0; i < rounds; ++i)
    if (write(there[1], &ball, 1) != 1 || read(back[0], &ball, 1) != 1) _exit(1);
  for (const int fd : {there[0], there[1], back[0], back[1]}) close(fd);
  waitpid(partner, nullptr, 0);
}

TEST_F(DrainRootTest, FindsTheKernelStackThatAWalkFinds) {
  if (probe::find_scheduler_code().text().start == 0)
    GTEST_SKIP() << "/proc/kallsyms hides addresses: every kernel stack is walked";
  ProbeOptions options;
  options.verify_every = 1;
  ChildAtWork child([] { ping_pong(110'000); });
  Recorder recorder(options, {child.pid()});
  child.start();
  for (int i = 0; i < 20; ++i) {
    nap(50'000'000);
    recorder.take(false);
  }
  child.await();
  const Recorded recorded = recorder.finish();
  expect_rows_to_match_books(recorded, "ping-pong");
  EXPECT_GE(recorded.count(DWELL_COUNT_SWITCHES), 200'000u);
  EXPECT_GE(recorded.count(DWELL_COUNT_KSTACK_HIT), 50'000u);
  EXPECT_EQ(recorded.count(DWELL_COUNT_KSTACK_VERIFIED), recorded.count(DWELL_COUNT_KSTACK_HIT));
  EXPECT_EQ(recorded.count(DWELL_LOSS_KSTACK_MISMATCH), 0u);
}

// Each of their switches sends a kernel stack's words until user space has learned from them, which
// nobody does here: more than one can take.
TEST_F(DrainRootTest, ATurnEndsThoughTheProbeSendsFasterThanItIsTaken) {
  if (probe::find_scheduler_code().text().start == 0)
    GTEST_SKIP() << "/proc/kallsyms hides addresses: no words are sent";
  ChildAtWork one([] { ping_pong(1'000'000); });
  ChildAtWork other([] { ping_pong(1'000'000); });
  const probe::SchedulerText text = probe::find_scheduler_code().text();
  auto probe = probe::Probe::load({.sched_text_start = text.start, .sched_text_end = text.end});
  ASSERT_TRUE(probe) << probe.error().message;
  for (const ChildAtWork* child : {&one, &other})
    ASSERT_TRUE(probe->add_target(*probe::find_process(child->pid())));
  Drain drain = Drain::create(probe->maps()).value();
  ASSERT_TRUE(probe->attach());
  ASSERT_TRUE(probe->open_window());
  one.start();
  other.start();
  constexpr size_t kRingHolds = (1 << 20) / sizeof(dwell_kernel_stack_sample) + 1;
  size_t most = 0, all = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (all < 20 * kRingHolds && std::chrono::steady_clock::now() < end) {
    Batch batch;
    ASSERT_TRUE(drain.take_rings(batch));
    most = std::max(most, batch.samples.size());
    all += batch.samples.size();
  }
  EXPECT_LE(most, kRingHolds);
  EXPECT_GE(all, 20 * kRingHolds) << "little was sent: this showed nothing";
}

}  // namespace
}  // namespace dwell::collect
