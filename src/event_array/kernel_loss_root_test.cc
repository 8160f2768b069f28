// Every output is delivered or counted, against the kernel's own ring.
#include <unistd.h>

#include <random>
#include <thread>

#include "event_array/kernel_fixture.h"

namespace dwell {
inline namespace v0 {
namespace {

using namespace std::chrono_literals;
using LossTest = KernelArrayTest;

// How long random load runs; DWELL_TEST_SECONDS for long runs.
std::chrono::seconds load_seconds() {
  const char* text = getenv("DWELL_TEST_SECONDS");
  return std::chrono::seconds(text != nullptr ? atoi(text) : 10);
}

TEST_F(LossTest, IsToldBeforeTheNextSample) {
  const auto array = open(one_page());
  PinToCpu pin(online_[0]);
  for (int i = 0; i < 21; ++i) ASSERT_EQ(generator_->output(180), 0);
  ASSERT_EQ(generator_->output(180), -ENOSPC);
  EXPECT_EQ(drain_all(*array).size(), 21u);
  ASSERT_EQ(generator_->output(5), 0);
  const auto got = drain_all(*array);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].type, ring::kRecordLost);
  EXPECT_EQ(got[0].lost, 1u);
  EXPECT_TRUE(got[1].is_sample());
}

TEST_F(LossTest, IsExactThoughNothingSucceedsAfterwards) {
  const auto array = open(one_page());
  PinToCpu pin(online_[0]);
  uint64_t refused = 0;
  for (int i = 0; i < 300; ++i) refused += generator_->output(64) == -ENOSPC;
  ASSERT_GT(refused, 200u);
  for (const Got& got : drain_all(*array)) EXPECT_TRUE(got.is_sample()) << "no LOST record yet";
  const RingStats stats = array->stats(online_[0]);
  EXPECT_EQ(stats.lost_exact, refused);
  EXPECT_EQ(stats.lost_reported, 0u);
  EXPECT_EQ(stats.lost_pending, refused);
}

TEST_F(LossTest, AddsUpOnEveryCpuUnderRandomLoad) {
  const auto array = open({.size = {.bytes_per_cpu = 16 << 10}});
  std::atomic<bool> stop = false;
  std::vector<std::thread> producers;
  for (const uint32_t cpu : online_)
    producers.emplace_back([&, cpu] {
      PinToCpu pin(cpu);
      std::mt19937 random(cpu);
      while (!stop) Generator::fire(random() % 600);
    });
  const auto end = std::chrono::steady_clock::now() + load_seconds();
  std::mt19937 random(1);
  while (std::chrono::steady_clock::now() < end) {
    ASSERT_TRUE(array->wait(10ms));
    array->drain({.max_records = random() % 500}, [](uint32_t, const Record&) {});
    if (random() % 10 == 0) std::this_thread::sleep_for(1ms);
  }
  stop = true;
  for (std::thread& t : producers) t.join();
  while (array->drain({}, [](uint32_t, const Record&) {}) != 0) {
  }
  for (const uint32_t cpu : online_) {
    const RingStats stats = array->stats(cpu);
    EXPECT_EQ(stats.samples, generator_->counts().ok[cpu]);
    EXPECT_EQ(stats.lost_exact, generator_->counts().no_space[cpu]);
    EXPECT_GT(*stats.lost_exact, 0u) << "the load was too low to show anything";
    EXPECT_EQ(generator_->counts().other[cpu], 0u);
    EXPECT_EQ(stats.samples + *stats.lost_exact, generator_->counts().calls[cpu]);
    EXPECT_EQ(stats.corrupt, 0u);
  }
}

TEST_F(LossTest, SumOfLostRecordsIsTheLossOnceASampleFollowed) {
  const auto array = open(one_page());
  PinToCpu pin(online_[0]);
  for (int i = 0; i < 10'000; ++i) Generator::fire(64);
  drain_all(*array);
  ASSERT_EQ(generator_->output(64), 0);
  uint64_t lost = 0;
  for (const Got& got : drain_all(*array)) {
    if (got.type != ring::kRecordLost) continue;
    EXPECT_GT(got.lost, 0u);
    lost += got.lost;
  }
  const RingStats stats = array->stats(online_[0]);
  EXPECT_EQ(lost, 10'001 - stats.samples);
  EXPECT_EQ(stats.lost_pending, 0u);
}

TEST_F(LossTest, WedgesTheKernelsRingAsTheWarningSays) {
  KernelEventArrayOptions options = one_page();
  options.max_payload = 4076;
  const auto array = open(options);
  EXPECT_EQ(array->report().warnings.size(), 1u);
  PinToCpu pin(online_[0]);
  ASSERT_EQ(generator_->output(4076), 0) << "fits a clean ring";
  ASSERT_EQ(generator_->output(4076), -ENOSPC);
  for (int i = 0; i < 10; ++i) {
    drain_all(*array);
    ASSERT_EQ(generator_->output(4076), -ENOSPC) << "never again, though the ring is empty";
  }
  EXPECT_EQ(array->stats(online_[0]).lost_exact, 11u);
  ASSERT_EQ(generator_->output(8), 0) << "a small one gets LOST through";
  drain_all(*array);
  EXPECT_EQ(generator_->output(4076), 0);
}

TEST_F(LossTest, CountsARecordLargerThanTheRing) {
  const auto array = open(one_page());
  PinToCpu pin(online_[0]);
  for (int i = 0; i < 7; ++i) EXPECT_EQ(generator_->output(5000), -ENOSPC);
  EXPECT_EQ(array->stats(online_[0]).lost_exact, 7u);
}

TEST_F(LossTest, CountsWhatAPauseRefuses) {
  const auto array = open(one_page());
  PinToCpu pin(online_[0]);
  ASSERT_TRUE(array->pause());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(generator_->output(24), -ENOSPC);
  ASSERT_TRUE(array->resume());
  EXPECT_EQ(generator_->output(24), 0);
  const auto got = drain_all(*array);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].lost, 3u) << "LOST comes first";
}

// -ENOSPC without a mapping is in no count: there is no ring to count in.
TEST_F(LossTest, DoesNotCountWhatFindsNoRing) {
  perf_event_attr attr = bpf_output_attr({});
  attr.disabled = 0;
  attr.read_format = 1 << 4;  // PERF_FORMAT_LOST
  const auto event = PerfKernel::real().open_event(attr, -1, static_cast<int>(online_[0]));
  ASSERT_TRUE(event) << event.error().message;
  ASSERT_TRUE(set_map_slot(generator_->map_fd(), online_[0], event->get()));
  PinToCpu pin(online_[0]);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(generator_->output(24), -ENOSPC);
  uint64_t values[2] = {};
  ASSERT_EQ(read(event->get(), values, sizeof values), 16);
  EXPECT_EQ(values[1], 0u);
}

TEST_F(LossTest, SurvivesPayloadsAbove64KiB) {
  const auto array = open({.size = {.bytes_per_cpu = 512 << 10}});
  PinToCpu pin(online_[0]);
  for (const uint64_t n : {65517u, 65524u, 65525u, 65536u, 65576u, 131072u, 200000u}) {
    for (int i = 0; i < 100; ++i) ASSERT_EQ(generator_->output(1000), 0);
    ASSERT_EQ(generator_->output(n), 0) << "the kernel reports success";
    uint64_t oversize = 0, whole = 0;
    for (int pass = 0; pass < 3; ++pass)
      array->drain({}, [&](uint32_t, const Record& record) {
        Sample sample;
        const SampleCheck check = decode_sample(array->format(), record, sample);
        oversize += check == SampleCheck::kOversize;
        whole += check == SampleCheck::kOk && sample.payload.size() == 1004;
      });
    EXPECT_EQ(whole, 100u) << n;
    if (n >= 65525) {
      EXPECT_GE(oversize + array->stats(online_[0]).corrupt, 1u) << n << ": named";
    }
    ASSERT_EQ(generator_->output(24), 0);
    const auto got = drain_all(*array);
    ASSERT_GE(got.size(), 1u) << "the ring is in use again";
  }
}

TEST_F(LossTest, SurvivesUnreadRecordsThatAnOversizeOneDestroyed) {
  const auto array = open({.size = {.bytes_per_cpu = 128 << 10}});
  PinToCpu pin(online_[0]);
  for (int i = 0; i < 112; ++i) ASSERT_EQ(generator_->output(1012), 0);  // 114,688 bytes unread
  ASSERT_EQ(generator_->output(65517), 0);
  uint64_t records = 0;
  for (int pass = 0; pass < 200 && array->has_data(); ++pass) records += drain_all(*array).size();
  EXPECT_FALSE(array->has_data());
  EXPECT_LE(records, (128u << 10) / 8);
  ASSERT_EQ(generator_->output(24), 0);
  EXPECT_EQ(drain_all(*array).size(), 1u);
}

TEST_F(LossTest, OverwritingRingsLapWithoutLoss) {
  KernelEventArrayOptions options = one_page();
  options.overwrite = true;
  const auto array = open(options);
  PinToCpu pin(online_[0]);
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(generator_->output(24 + random() % 100), 0);
    const uint64_t newest = generator_->counts().calls[online_[0]] - 1;
    std::vector<uint64_t> seqs;
    const auto collect = [&](const Record& record) {
      if (record.is_sample()) seqs.push_back(copy_of(*array, online_[0], record).front().seq);
      return true;
    };
    ASSERT_TRUE(round % 2 == 0 ? array->snapshot(online_[0], collect)
                               : array->swap_snapshot(online_[0], collect));
    ASSERT_GT(seqs.size(), 20u);
    for (size_t i = 0; i < seqs.size(); ++i) ASSERT_EQ(seqs[i], newest - i);
  }
  EXPECT_EQ(array->stats(online_[0]).lost_exact.value_or(0), 0u);
  EXPECT_EQ(array->drain({}, [](uint32_t, const Record&) {}), 0u);
}

TEST_F(LossTest, AnEmptyOverwritingRingHasAnEmptySnapshot) {
  KernelEventArrayOptions options = one_page();
  options.overwrite = true;
  const auto array = open(options);
  EXPECT_TRUE(array->snapshot(online_[0], [](const Record&) {
    ADD_FAILURE();
    return true;
  }));
  EXPECT_FALSE(open(one_page())->snapshot(online_[0], [](const Record&) { return true; }))
      << "a forward ring has none";
}

}  // namespace
}  // namespace v0
}  // namespace dwell
