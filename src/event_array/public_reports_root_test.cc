// What users of other readers reported in public, on the kernel's rings.
#include <atomic>
#include <ctime>
#include <random>
#include <thread>

#include "event_array/event_session.h"
#include "event_array/kernel_fixture.h"

namespace dwell {
inline namespace v0 {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using PublicReportTest = KernelArrayTest;

std::chrono::seconds load_seconds() {
  const char* text = getenv("DWELL_TEST_SECONDS");
  return std::chrono::seconds(text != nullptr ? atoi(text) : 2);
}

// The kernel pads, and once the ring has gone round, with bytes of older records.
TEST_F(PublicReportTest, GivesTypesTheirSizeThoughThePaddingIsOld) {
  const auto array = open(one_page());
  PinToCpu pin(online_[0]);
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(generator_->output(1000, ring::kCurrentCpu, true), 0);
    drain_all(*array);
  }
  for (uint64_t size = sizeof(generated); size <= 64; ++size) {
    ASSERT_EQ(generator_->output(size), 0);
    array->drain({}, [&](uint32_t, const Record& record) {
      Sample sample;
      ASSERT_EQ(decode_sample(array->format(), record, sample), SampleCheck::kOk);
      EXPECT_EQ(sample.payload.size() % 8, 4u) << "padded, as documented";
      EXPECT_EQ(payload_as<generated>(sample)->size, size);
      const auto longer = payload_as<std::array<std::byte, 57>>(sample);
      EXPECT_EQ(longer.has_value(), sample.payload.size() >= 57) << size;
      if (longer && size >= 57) {
        EXPECT_TRUE(std::equal(longer->begin() + sizeof(generated), longer->end(),
                               Generator::pattern().begin() + sizeof(generated)));
      }
    });
  }
}

// Fires from one CPU without pause while it lives.
class Flood {
 public:
  explicit Flood(uint32_t cpu)
      : thread_([this, cpu] {
          PinToCpu pin(cpu);
          while (!stop_) Generator::fire(64);
        }) {}
  ~Flood() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

TEST_F(PublicReportTest, AFloodKeepsTheReaderFromNeitherItsTimerNorItsStop) {
  if (online_.size() < 2) GTEST_SKIP() << "needs two CPUs";
  const auto array = open({.size = {.bytes_per_cpu = 64 << 10}});
  uint64_t periodic = 0, quiet = 0;
  SessionCallbacks callbacks;
  callbacks.on_event = [&](const Event& event) {
    quiet += event.cpu == online_[1];
    return Verdict::kContinue;
  };
  const auto session = std::move(*EventSession::create(*array, std::move(callbacks)));
  Flood flood(online_[0]);
  const auto ticks = static_cast<uint64_t>(load_seconds() / 10ms);
  std::thread other([&] {
    PinToCpu pin(online_[1]);
    for (uint64_t i = 0; i < ticks; ++i) {
      Generator::fire(24);
      std::this_thread::sleep_for(10ms);
    }
    session->stop();  // the flood goes on
  });
  auto next = Clock::now() + 100ms;
  for (;;) {
    const auto result = session->poll(100ms);
    ASSERT_TRUE(result);
    if (result->why == PollResult::Why::kStopped) break;
    if (Clock::now() < next) continue;
    next = Clock::now() + 100ms;
    ++periodic;
  }
  other.join();
  session->consume();
  EXPECT_EQ(quiet, ticks);
  EXPECT_EQ(array->stats(online_[1]).lost_exact, 0u) << "only the flooded CPU loses";
  EXPECT_EQ(array->stats(online_[1]).samples, generator_->counts().calls[online_[1]]);
  EXPECT_GT(periodic, ticks / 20) << "of " << ticks / 10 << " that were due";
}

TEST_F(PublicReportTest, LossOfAPausedConsumerIsExactAndNeverZero) {
  const auto array = open(one_page());
  uint64_t events = 0, lost = 0, zero = 0;
  SessionCallbacks callbacks;
  callbacks.on_event = [&](const Event&) { return ++events, Verdict::kContinue; };
  callbacks.on_lost = [&](uint32_t, uint64_t count) { lost += count, zero += count == 0; };
  const auto session = std::move(*EventSession::create(*array, std::move(callbacks)));
  PinToCpu pin(online_[0]);
  for (int i = 0; i < 10'000; ++i) Generator::fire(64);
  session->consume();
  ASSERT_EQ(generator_->output(64), 0);
  session->consume();
  EXPECT_EQ(events + lost, 10'001u);
  EXPECT_EQ(zero, 0u);
  array->close();
  const uint64_t at_close = events + lost;
  for (int i = 0; i < 100; ++i) Generator::fire(64);
  EXPECT_EQ(session->consume(), 0u);
  EXPECT_EQ(events + lost, at_close) << "nothing is told after close";
}

TEST_F(PublicReportTest, OpensAndClosesUnderAFloodAndLeavesNothing) {
  const size_t before = open_descriptors();
  {
    Flood flood(online_[0]);
    for (int round = 0; round < 300; ++round) {
      const auto array = open(one_page());
      ASSERT_NE(array, nullptr);
      if (round % 3 == 0) continue;  // destroyed without close
      std::thread closer([&] { array->close(); });
      array->drain({}, [](uint32_t, const Record&) {});
      closer.join();
    }
  }
  EXPECT_EQ(open_descriptors(), before);
}

// Whole records only, newest first and without gaps, though the ring has been lapped for long.
TEST_F(PublicReportTest, BackwardRingsOfEverySizeHoldTheNewestRecords) {
  constexpr uint64_t kLargest = 400;
  PinToCpu pin(online_[0]);
  std::mt19937 random(60);
  for (const uint64_t pages : {1, 2, 8}) {
    KernelEventArrayOptions options{.size = {.bytes_per_cpu = pages * 4096}};
    options.overwrite = true;
    const auto array = open(options);
    for (int part = 0; part < 2; ++part) {  // read; go on; read again
      for (int i = 0; i < 50'000; ++i) Generator::fire(sizeof(generated) + random() % 360);
      const uint64_t newest = generator_->counts().calls[online_[0]] - 1;
      uint64_t count = 0;
      ASSERT_TRUE(array->snapshot(online_[0], [&](const Record& record) {
        const Got got = copy_of(*array, online_[0], record);
        EXPECT_EQ(got.front().seq, newest - count);
        EXPECT_TRUE(std::equal(got.payload.begin() + sizeof(generated),
                               got.payload.begin() + got.front().size,
                               Generator::pattern().begin() + sizeof(generated)));
        ++count;
        return !HasFailure();
      }));
      EXPECT_GE(count, pages * 4096 / kLargest - 1) << pages << " pages";
    }
  }
}

uint64_t monotonic_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Two threads on two CPUs hand a turn over; each event was caused by the one before.
TEST_F(PublicReportTest, CausesComeBeforeEffects) {
  if (online_.size() < 2) GTEST_SKIP() << "needs two CPUs";
  constexpr uint32_t kHandOvers = 20'000;
  const auto array = open({.size = {.bytes_per_cpu = 4 << 20}, .timestamps = true});
  uint64_t next = 0, unordered = 0, first_ns = 0, last_ns = 0;
  SessionCallbacks callbacks;
  callbacks.on_event = [&](const Event& event) {
    unordered += event.as<generated>()->seq != next++;
    first_ns = first_ns != 0 ? first_ns : event.time_ns;
    unordered += event.time_ns < last_ns;
    last_ns = event.time_ns;
    return Verdict::kContinue;
  };
  const auto session =
      std::move(*EventSession::create(*array, std::move(callbacks), {.ordered = true}));
  generator_->count_over_all_cpus();
  const uint64_t start_ns = monotonic_ns();
  std::atomic<uint32_t> turn = 0;
  std::vector<std::thread> players;
  for (uint32_t player = 0; player < 2; ++player)
    players.emplace_back([&, player] {
      PinToCpu pin(online_[player]);
      for (uint32_t mine = player; mine < kHandOvers; mine += 2) {
        for (uint32_t now = turn; now != mine; now = turn) turn.wait(now);
        Generator::fire(24);
        turn = mine + 1;
        turn.notify_one();
      }
    });
  while (turn < kHandOvers) ASSERT_TRUE(session->poll(20ms));
  for (std::thread& player : players) player.join();
  const uint64_t end_ns = monotonic_ns();
  while (array->has_data()) session->consume();
  session->drain_order();
  EXPECT_EQ(next, kHandOvers);
  EXPECT_EQ(unordered, 0u);
  EXPECT_EQ(session->stats().late, 0u);
  EXPECT_TRUE(start_ns <= first_ns && last_ns <= end_ns) << "stamps lie in the window";
}

}  // namespace
}  // namespace v0
}  // namespace dwell
