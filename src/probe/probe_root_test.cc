// The probe against the running kernel: what it loads, what it leaves behind, and the books of
// threads whose doings are known.
#include <bpf/bpf.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "probe/child_at_work.h"
#include "probe/doctor.h"
#include "probe/probe.h"
#include "probe/scheduler_code.h"

namespace dwell::probe {
namespace {

using testing::HasSubstr;

using Records = std::map<uint32_t, dwell_thread_record>;  // by tid

uint64_t accounted_ns(const dwell_books& books) {
  return books.running_ns + books.run_queue_ns + books.blocked_ns + books.censored_run_queue_ns +
         books.censored_blocked_ns + books.lost_ns;
}

uint64_t off_cpu_ns(const dwell_books& books) {
  return accounted_ns(books) - books.running_ns - books.lost_ns;
}

void expect_conserved(const dwell_thread_record& record, const std::string& label) {
  if (record.flags & (DWELL_THREAD_GAP | DWELL_THREAD_UNSEEN)) return;  // the rest is lost
  EXPECT_EQ(accounted_ns(record.books), record.end_ns - record.birth_ns)
      << label << ": thread " << record.tid;
}

// Descriptors of this process for BPF objects: "bpf-prog", "bpf-map", "bpf_link", ...
std::vector<int> bpf_descriptors(const std::string& kind = "bpf") {
  std::vector<int> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the one that reads this directory
    const std::string object = std::filesystem::read_symlink(entry.path(), gone).string();
    if (object.find(kind) != std::string::npos) found.push_back(std::stoi(entry.path().filename()));
  }
  return found;
}

size_t count_descriptors() {
  const std::filesystem::directory_iterator entries("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(entries), end(entries)));
}

// Ids of the programs that this process has loaded.
std::vector<uint32_t> own_programs() {
  std::vector<uint32_t> ids;
  for (const int fd : bpf_descriptors("bpf-prog")) {
    bpf_prog_info info = {};
    uint32_t size = sizeof info;
    if (bpf_obj_get_info_by_fd(fd, &info, &size) == 0) ids.push_back(info.id);
  }
  return ids;
}

bool is_loaded(uint32_t program) {
  const Fd fd(bpf_prog_get_fd_by_id(program));
  return static_cast<bool>(fd);
}

class ProbeRootTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reasons = reasons_against(examine_machine());
    if (!reasons.empty()) GTEST_SKIP() << "this machine cannot be recorded: " << reasons;
    const SchedulerText text = find_scheduler_code().text();
    options_.sched_text_start = text.start;
    options_.sched_text_end = text.end;
  }

  Probe ready(const ProbeOptions& options, const std::vector<Target>& targets) {
    auto loaded = Probe::load(options);
    if (!loaded) ADD_FAILURE() << loaded.error().message;
    Probe probe = std::move(loaded).value();
    for (const Target& target : targets) EXPECT_TRUE(probe.add_target(target));
    const Status attached = probe.attach();
    if (!attached) ADD_FAILURE() << attached.error().message;
    return probe;
  }
  Probe ready(const ProbeOptions& options, const ChildAtWork& child) {
    return ready(options, {*find_process(child.pid())});
  }

  static Records close(Probe& probe) {
    const auto records = probe.close_window();
    EXPECT_TRUE(records) << records.error().message;
    Records by_tid;
    if (!records) return by_tid;
    for (const dwell_thread_record& record : *records)
      EXPECT_TRUE(by_tid.emplace(record.tid, record).second) << "told twice: " << record.tid;
    return by_tid;
  }

  // The books of a child that works inside the window.
  dwell_thread_record record_child(const ProbeOptions& options, ChildAtWork& child) {
    Probe probe = ready(options, child);
    EXPECT_TRUE(probe.open_window());
    nap(3'000'000);
    child.work();
    const Records records = close(probe);
    const auto found = records.find(child.pid());
    EXPECT_NE(found, records.end());
    return found == records.end() ? dwell_thread_record{} : found->second;
  }

  ProbeOptions options_;
};

void nap_ten_times() {
  for (int i = 0; i < 10; ++i) nap(500'000);
}

TEST_F(ProbeRootTest, BooksEveryNanosecondWhateverTheOptions) {
  for (int bits = 0; bits < 32; ++bits) {
    ProbeOptions options = options_;
    options.user_stacks = bits & 1;
    options.kernel_stacks = bits & 2;
    options.signatures = bits & 4;
    options.runnable_kernel_stacks = bits & 8;
    options.raw = bits & 16;
    const std::string label = fmt::format("options {:05b}", bits);
    ChildAtWork child(nap_ten_times);
    const dwell_thread_record record = record_child(options, child);
    expect_conserved(record, label);
    EXPECT_GE(record.books.blocked_intervals, 10u) << label;
    EXPECT_GE(record.books.blocked_ns, 5'000'000u) << label;
    EXPECT_GT(record.books.running_ns, 0u) << label;
  }
}

TEST_F(ProbeRootTest, BooksEveryNanosecondInTheSmallestMaps) {
  ProbeOptions options = options_;
  options.rows = 1;
  options.stacks = 1;
  options.stack_ring_bytes = 1;
  options.thread_ring_bytes = 1;
  ChildAtWork child(nap_ten_times);
  const dwell_thread_record record = record_child(options, child);
  expect_conserved(record, "smallest maps");
  EXPECT_GT(record.books.overflow_ns, 0u);
  EXPECT_LT(record.books.overflow_intervals, record.books.intervals) << "one row did fit";
}

TEST_F(ProbeRootTest, BooksWhatFiltersKeepOutOfTheRows) {
  ChildAtWork child(nap_ten_times);
  ProbeOptions nothing = options_;
  nothing.class_mask = 1u << DWELL_CLASS_PARKED;
  dwell_thread_record record = record_child(nothing, child);
  expect_conserved(record, "class");
  EXPECT_EQ(record.books.filtered_ns, off_cpu_ns(record.books));
  EXPECT_EQ(record.books.filtered_intervals, record.books.intervals);

  ProbeOptions sleeping = options_;
  sleeping.state_mask = 1;  // S
  record = record_child(sleeping, child);
  expect_conserved(record, "state");
  EXPECT_EQ(record.books.filtered_intervals,
            record.books.intervals - record.books.blocked_intervals);
}

TEST_F(ProbeRootTest, GivesAThreadThatNeverRunsExactlyTheWindow) {
  ChildAtWork child(nap_ten_times);
  Probe probe = ready(options_, child);
  const auto start = probe.open_window();
  ASSERT_TRUE(start);
  nap(20'000'000);
  const Records records = close(probe);
  ASSERT_EQ(records.size(), 1u);
  const dwell_thread_record& record = records.at(child.pid());
  const uint64_t window_ns = probe.window_end_ns() - probe.window_start_ns();
  EXPECT_EQ(*start, probe.window_start_ns());
  EXPECT_EQ(record.birth_ns, probe.window_start_ns());
  EXPECT_EQ(record.end_ns, probe.window_end_ns());
  EXPECT_EQ(record.books.censored_blocked_ns, window_ns);
  EXPECT_EQ(accounted_ns(record.books), window_ns);
  EXPECT_EQ(record.books.intervals, 1u);
  EXPECT_EQ(record.ended, DWELL_END_ALIVE);
  EXPECT_EQ(record.flags, DWELL_THREAD_FIRST);
}

TEST_F(ProbeRootTest, GivesAThreadThatNeverRestsTheWindowAsWell) {
  ChildAtWork child([] {
    for (volatile bool forever = true; forever;) continue;
  });
  child.start();
  Probe probe = ready(options_, child);
  ASSERT_TRUE(probe.open_window());
  nap(100'000'000);
  const Records records = close(probe);
  const dwell_thread_record& record = records.at(child.pid());
  expect_conserved(record, "spinning");
  EXPECT_EQ(record.end_ns - record.birth_ns, probe.window_end_ns() - probe.window_start_ns());
  EXPECT_EQ(record.books.blocked_ns + record.books.censored_blocked_ns, 0u);
  EXPECT_GT(record.books.running_ns, 0u);
}

TEST_F(ProbeRootTest, RecordsKernelThreadsOnlyOrUserThreadsOnly) {
  ChildAtWork child([] {});
  for (const bool kernel : {true, false}) {
    ProbeOptions options = options_;
    options.all = true;
    options.kernel_threads = kernel;
    options.user_threads = !kernel;
    Probe probe = ready(options, std::vector<Target>{});
    ASSERT_TRUE(probe.open_window());
    nap(100'000'000);
    const Records records = close(probe);
    EXPECT_FALSE(records.empty());
    EXPECT_EQ(records.contains(child.pid()), !kernel);
    EXPECT_FALSE(records.contains(static_cast<uint32_t>(getpid()))) << "the recorder itself";
    for (const auto& [tid, record] : records) {
      EXPECT_EQ((record.flags & DWELL_THREAD_KERNEL) != 0, kernel) << record.comm;
      expect_conserved(record, record.comm);
    }
  }
}

TEST_F(ProbeRootTest, LeavesOtherProcessesAlone) {
  ChildAtWork child(nap_ten_times), stranger(nap_ten_times);
  Probe probe = ready(options_, child);
  ASSERT_TRUE(probe.open_window());
  stranger.work();
  child.work();
  const Records records = close(probe);
  EXPECT_EQ(records.size(), 1u);
  EXPECT_TRUE(records.contains(child.pid()));
}

TEST_F(ProbeRootTest, TakesNoStrangerForATargetWhoseNumberHeHas) {
  ChildAtWork child(nap_ten_times);
  Target target = *find_process(child.pid());
  target.start_boottime_ns -= 1'000'000'000;  // the number's owner of a second before
  Probe probe = ready(options_, {target});
  ASSERT_TRUE(probe.open_window());
  child.work();
  EXPECT_TRUE(close(probe).empty());
}

TEST_F(ProbeRootTest, TwoProbesRecordTheSameThreadAtOnce) {
  ChildAtWork child(nap_ten_times);
  Probe first = ready(options_, child);
  ASSERT_TRUE(first.open_window());
  Probe second = ready(options_, child);
  ASSERT_TRUE(second.open_window());
  nap(3'000'000);
  child.work();
  const dwell_thread_record inner = close(second).at(child.pid());
  const dwell_thread_record outer = close(first).at(child.pid());
  expect_conserved(inner, "inner");
  expect_conserved(outer, "outer");
  EXPECT_EQ(inner.books.blocked_intervals, outer.books.blocked_intervals) << "the same waits";
  EXPECT_GT(outer.end_ns - outer.birth_ns, inner.end_ns - inner.birth_ns);
}

TEST_F(ProbeRootTest, LeavesNothingBehind) {
  ChildAtWork child(nap_ten_times);
  record_child(options_, child);  // what libbpf and we keep for good is there after one round
  const size_t before = count_descriptors();
  std::vector<uint32_t> programs;
  for (int round = 0; round < 20; ++round) {
    Probe probe = ready(options_, child);
    ASSERT_TRUE(probe.open_window());
    if (round % 2 == 0) close(probe);
    programs = own_programs();
    EXPECT_GE(programs.size(), 7u);
    for (const uint32_t program : programs) EXPECT_TRUE(is_loaded(program));
  }
  EXPECT_EQ(count_descriptors(), before);
  EXPECT_TRUE(bpf_descriptors().empty());
  for (const uint32_t program : programs) {
    for (int i = 0; i < 200 && is_loaded(program); ++i)
      nap(10'000'000);  // the kernel takes its time
    EXPECT_FALSE(is_loaded(program)) << program;
  }
}

TEST_F(ProbeRootTest, LeavesNothingBehindWhenItCannotLoad) {
  const size_t before = count_descriptors();
  ProbeOptions no_stacks = options_;
  no_stacks.stacks = 0;  // refused while the object is loaded
  const auto refused = Probe::load(no_stacks);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("EINVAL"));
  ProbeOptions no_rows = options_;
  no_rows.rows = 0;  // refused after that
  const auto rowless = Probe::load(no_rows);
  ASSERT_FALSE(rowless);
  EXPECT_THAT(rowless.error().message, HasSubstr("cannot create a map of 0 rows"));
  EXPECT_THAT(rowless.error().message, HasSubstr("EINVAL"));
  EXPECT_THAT(rowless.error().message, HasSubstr("--rows"));
  EXPECT_EQ(count_descriptors(), before);
  EXPECT_TRUE(bpf_descriptors().empty());
}

TEST_F(ProbeRootTest, SaysHowMuchKernelMemoryItsMapsTake) {
  ChildAtWork child(nap_ten_times);
  ProbeOptions larger = options_;
  larger.stack_ring_bytes = options_.stack_ring_bytes * 4;
  const uint64_t normal = ready(options_, child).kernel_memory_bytes();
  EXPECT_GE(normal, options_.stack_ring_bytes + options_.thread_ring_bytes);
  EXPECT_GE(ready(larger, child).kernel_memory_bytes(), normal + 3 * options_.stack_ring_bytes);
}

TEST_F(ProbeRootTest, RefusesMoreTargetsThanItHasRoomFor) {
  auto probe = Probe::load(options_);
  ASSERT_TRUE(probe);
  Status status;
  uint32_t id = 1;
  for (; status && id <= 5000; ++id) status = probe->add_target({id, false, 0});
  ASSERT_FALSE(status);
  EXPECT_GT(id, 4096u);
  EXPECT_THAT(status.error().message, HasSubstr("too many targets"));
}

// Bytes of this process's programs as the kernel keeps them, and its perf event arrays.
std::pair<uint64_t, size_t> weight_of(const Probe&) {
  uint64_t bytes = 0;
  size_t arrays = 0;
  for (const int fd : bpf_descriptors("bpf-prog")) {
    bpf_prog_info info = {};
    uint32_t size = sizeof info;
    if (bpf_obj_get_info_by_fd(fd, &info, &size) == 0) bytes += info.xlated_prog_len;
  }
  for (const int fd : bpf_descriptors("bpf-map")) {
    bpf_map_info info = {};
    uint32_t size = sizeof info;
    if (bpf_obj_get_info_by_fd(fd, &info, &size) == 0)
      arrays += info.type == BPF_MAP_TYPE_PERF_EVENT_ARRAY;
  }
  return {bytes, arrays};
}

TEST_F(ProbeRootTest, LoadsNothingOfTheTimelineUnlessAsked) {
  for (const bool raw : {false, true}) {
    options_.raw = raw;
    options_.timeline_min_ns.reset();
    const auto [bytes, arrays] = weight_of(ready(options_, std::vector<Target>{}));
    options_.timeline_min_ns = 0;
    const auto [more_bytes, more_arrays] = weight_of(ready(options_, std::vector<Target>{}));
    EXPECT_EQ(arrays, 0u);
    EXPECT_EQ(more_arrays, 1u);
    EXPECT_LT(bytes, more_bytes);
  }
}

}  // namespace
}  // namespace dwell::probe
