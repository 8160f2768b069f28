// What a program outputs arrives, whole, at whom it should.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "event_array/kernel_fixture.h"

namespace dwell {
inline namespace v0 {
namespace {

using namespace std::chrono_literals;
using DeliveryTest = KernelArrayTest;
using Clock = std::chrono::steady_clock;

TEST_F(DeliveryTest, GivesEachCpusEventToThatCpu) {
  const auto array = open();
  for (const uint32_t cpu : online_) {
    PinToCpu pin(cpu);
    ASSERT_EQ(generator_->output(24), 0);
  }
  std::vector<uint32_t> cpus;
  for (const Got& got : drain_all(*array)) {
    EXPECT_EQ(got.front().cpu, got.cpu);
    cpus.push_back(got.cpu);
  }
  EXPECT_EQ(cpus, online_);
}

TEST_F(DeliveryTest, DrainsEachRingAlone) {
  const auto array = open();
  for (const uint32_t cpu : online_) {
    PinToCpu pin(cpu);
    generator_->output(24);
    EXPECT_EQ(array->drain_ring(cpu, {}, [](const Record&) {}), 1u);
  }
  EXPECT_FALSE(array->has_data());
  EXPECT_EQ(array->drain_ring(5000, {}, [](const Record&) {}), 0u);
}

TEST_F(DeliveryTest, KeepsTheBytesOfEverySize) {
  const auto array = open();
  PinToCpu pin(online_[0]);
  std::vector<uint64_t> sizes;
  for (uint64_t n = 0; n <= 64; ++n) sizes.push_back(n);
  for (const uint64_t n : {100, 1000, 65516}) sizes.push_back(n);
  for (const uint64_t n : sizes) {
    ASSERT_EQ(generator_->output(n, 0xffffffff, true), 0);
    const auto got = drain_all(*array);
    ASSERT_EQ(got.size(), 1u) << n;
    ASSERT_EQ(got[0].payload.size(), (n + 4 + 7) / 8 * 8 - 4) << n;
    if (n >= 24)  // the front may hold a struct generated of another test
      EXPECT_TRUE(std::equal(Generator::pattern().begin() + 24,
                             Generator::pattern().begin() + static_cast<long>(n),
                             got[0].payload.begin() + 24))
          << n;
    else
      EXPECT_TRUE(std::equal(Generator::pattern().begin(),
                             Generator::pattern().begin() + static_cast<long>(n),
                             got[0].payload.begin()))
          << n;
  }
}

TEST_F(DeliveryTest, JoinsARecordAtEveryPlaceAcrossTheEnd) {
  const auto array = open(one_page());
  PinToCpu pin(online_[0]);
  // 16 bytes forward per round: the second record wraps at every offset in turn.
  for (int round = 0; round < 1024; ++round) {
    ASSERT_EQ(generator_->output(0), 0);
    ASSERT_EQ(generator_->output(3000), 0);
    const auto got = drain_all(*array);
    ASSERT_EQ(got.size(), 2u);
    ASSERT_EQ(got[1].front().size, 3000u);
    ASSERT_TRUE(std::equal(Generator::pattern().begin() + 24, Generator::pattern().begin() + 3000,
                           got[1].payload.begin() + 24))
        << round;
  }
}

TEST_F(DeliveryTest, AppendsPacketBytesAsAsked) {
  const auto array = open();
  PinToCpu pin(online_[0]);
  std::vector<std::byte> packet(200);
  for (size_t i = 0; i < packet.size(); ++i) packet[i] = static_cast<std::byte>(i * 3);
  ASSERT_EQ(generator_->output_xdp(packet, 8, ring::kCurrentCpu | 100ull << 32), 0);
  auto got = drain_all(*array);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0].payload.size(), 108u);
  EXPECT_TRUE(std::equal(packet.begin(), packet.begin() + 100, got[0].payload.begin() + 8));

  EXPECT_EQ(generator_->output_xdp(packet, 8, ring::kCurrentCpu | 201ull << 32), -EFAULT);
  EXPECT_TRUE(drain_all(*array).empty());
}

TEST_F(DeliveryTest, AnswersBadFlagsAsTheSpecificationSays) {
  load(static_cast<uint32_t>(online_.size()));
  const auto array = open();
  PinToCpu pin(online_[0]);
  const std::vector<std::byte> packet(64);
  EXPECT_EQ(generator_->output(16, 1ull << 32 | 0xffffffff), -EINVAL) << "capture in a tracepoint";
  EXPECT_EQ(generator_->output_xdp(packet, 16, 1ull << 52 | 0xffffffff), -EINVAL) << "reserved";
  EXPECT_EQ(generator_->output(16, online_.size()), -E2BIG);
  EXPECT_EQ(generator_->output(16, 0xfffffffe), -E2BIG);
  if (online_.size() > 1) {
    EXPECT_EQ(generator_->output(16, online_[1]), -EOPNOTSUPP) << "another CPU's ring";
  }
  EXPECT_EQ(generator_->output(16, online_[0]), 0) << "its own by number";
  ASSERT_TRUE(array->detach());
  EXPECT_EQ(generator_->output(16), -ENOENT);
  EXPECT_EQ(drain_all(*array).size(), 1u) << "what is in the ring stays readable";
}

TEST_F(DeliveryTest, TwoThreadsShareTheRingsWithoutDoubles) {
  if (online_.size() < 2) GTEST_SKIP() << "needs two CPUs";
  const auto array = open();
  constexpr uint64_t kEach = 20'000;
  std::atomic<uint64_t> read[2] = {};
  std::atomic<bool> done = false;
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i)
    readers.emplace_back([&, i] {
      uint64_t next = 0;
      for (bool last = false; !last;) {
        last = done;
        read[i] += array->drain_ring(online_[static_cast<size_t>(i)], {}, [&](const Record& r) {
          const Got got = copy_of(*array, online_[static_cast<size_t>(i)], r);
          if (got.is_sample()) {
            ASSERT_GE(got.front().seq, next);
            next = got.front().seq + 1;
          }
        });
        std::this_thread::yield();
      }
    });
  std::vector<std::thread> producers;
  for (size_t i = 0; i < 2; ++i)
    producers.emplace_back([&, i] {
      PinToCpu pin(online_[i]);
      for (uint64_t n = 0; n < kEach; ++n) Generator::fire(24);
    });
  for (std::thread& t : producers) t.join();
  done = true;
  for (std::thread& t : readers) t.join();
  const RingStats total = array->total_stats();
  EXPECT_EQ(total.samples, generator_->total(generator_->counts().ok));
  EXPECT_EQ(total.samples + total.lost_exact.value_or(0), 2 * kEach);
}

TEST_F(DeliveryTest, AForkedChildLeavesTheArrayAlone) {
  auto array = open();
  PinToCpu pin(online_[0]);
  generator_->output(24);
  const pid_t child = fork();
  if (child == 0) {
    // The mapping did not come along: a drain that looked at it would die.
    const bool refused = !array->wait(0ns).has_value() && drain_all(*array).empty();
    array.reset();
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(generator_->output(24), 0) << "slots are as they were";
  EXPECT_EQ(drain_all(*array).size(), 2u);
}

TEST_F(DeliveryTest, HearsOneThreadOnlyIfAsked) {
  const auto array = open({.tid = gettid()});
  PinToCpu pin(online_[0]);
  EXPECT_EQ(generator_->output(24), 0);
  std::thread([&] {
    PinToCpu also(online_[0]);
    EXPECT_EQ(generator_->output(24), -EOPNOTSUPP);
  }).join();
  EXPECT_EQ(drain_all(*array).size(), 1u);
}

TEST_F(DeliveryTest, StampsRecordsIfAsked) {
  const auto array = open({.timestamps = true});
  PinToCpu pin(online_[0]);
  generator_->output(24);
  uint64_t seen = 0;
  array->drain({}, [&](uint32_t cpu, const Record& record) {
    Sample sample;
    ASSERT_EQ(decode_sample(array->format(), record, sample), SampleCheck::kOk);
    EXPECT_EQ(sample.ids.cpu, cpu);
    EXPECT_EQ(sample.ids.pid, static_cast<uint32_t>(getpid()));
    EXPECT_EQ(sample.ids.tid, static_cast<uint32_t>(gettid()));
    const auto front = payload_as<generated>(sample);
    ASSERT_TRUE(front);
    EXPECT_GE(sample.ids.time_ns, front->ktime_ns) << "same clock as bpf_ktime_get_ns";
    EXPECT_LT(sample.ids.time_ns - front->ktime_ns, 1'000'000'000u);
    ++seen;
  });
  EXPECT_EQ(seen, 1u);
}

// A budget of 5 records of 10 ms each: another CPU waits about 50 ms, however much is there.
TEST_F(DeliveryTest, ASlowConsumerDelaysOtherCpusByItsBudgetOnly) {
  if (online_.size() < 2) GTEST_SKIP() << "needs two CPUs";
  const auto array = open();
  {
    PinToCpu pin(online_[0]);
    for (int i = 0; i < 100; ++i) generator_->output(24);
  }
  array->drain({.max_records = 1}, [](uint32_t, const Record&) { return false; });  // CPU 0 first
  PinToCpu pin(online_[1]);
  generator_->output(24);
  uint64_t before_quiet = 0, quiet = 0;
  while (quiet == 0)
    array->drain({.max_records = 5}, [&](uint32_t cpu, const Record&) {
      if (cpu == online_[1]) {
        ++quiet;
        return;
      }
      before_quiet += quiet == 0;
      std::this_thread::sleep_for(10ms);
    });
  EXPECT_LE(before_quiet, 5u) << "of 99 that wait";
}

TEST_F(DeliveryTest, AFloodedCpuDoesNotStarveAQuietOne) {
  if (online_.size() < 2) GTEST_SKIP() << "needs two CPUs";
  const auto array = open({.size = {.bytes_per_cpu = 64 << 10}});
  std::atomic<bool> stop = false;
  std::thread flood([&] {
    PinToCpu pin(online_[0]);
    while (!stop) Generator::fire(64);
  });
  std::thread quiet([&] {
    PinToCpu pin(online_[1]);
    for (int i = 0; i < 100; ++i) {
      Generator::fire(24);
      std::this_thread::sleep_for(10ms);
    }
    stop = true;
  });
  uint64_t quiet_seen = 0, slowest_ns = 0;
  while (!stop || array->has_data()) {
    if (array->wait(50ms).value() != WaitResult::kReady) continue;
    array->drain({.max_records = 200}, [&](uint32_t cpu, const Record& record) {
      if (cpu != online_[1] || !record.is_sample()) return;
      ++quiet_seen;
      const uint64_t now = static_cast<uint64_t>(Clock::now().time_since_epoch().count());
      slowest_ns =
          std::max<uint64_t>(slowest_ns, now - copy_of(*array, cpu, record).front().ktime_ns);
    });
    if (!stop) continue;
    flood.joinable() ? flood.join() : void();
  }
  quiet.join();
  if (flood.joinable()) flood.join();
  EXPECT_EQ(quiet_seen, 100u);
  EXPECT_LT(slowest_ns, 150'000'000u) << "one sweep and some scheduling";
}

}  // namespace
}  // namespace v0
}  // namespace dwell
