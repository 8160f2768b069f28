// Waiting for a kernel array: wake-ups, sweeps, timeouts, signals, flush and close.
#include <poll.h>
#include <sys/epoll.h>
#include <sys/time.h>

#include <atomic>
#include <csignal>
#include <thread>

#include "event_array/kernel_fixture.h"

namespace dwell {
inline namespace v0 {
namespace {

using namespace std::chrono_literals;
using WaitTest = KernelArrayTest;
using Clock = std::chrono::steady_clock;

// Rings that wake nobody by themselves for the few events of a test, and no sweep.
KernelEventArrayOptions silent() {
  return {.wakeup = {.watermark_bytes = 64 << 10}, .wait = {.sweep = 0ns}};
}

bool readable(int fd, int timeout_ms) {
  pollfd p = {fd, POLLIN, 0};
  return poll(&p, 1, timeout_ms) == 1;
}
TEST_F(WaitTest, DrainsWithoutAnyWakeUp) {
  const auto array = open(silent());
  PinToCpu pin(online_[0]);
  generator_->output(24);
  EXPECT_FALSE(readable(array->fd(), 0));
  EXPECT_EQ(array->wait(kForever).value(), WaitResult::kReady) << "heads are looked at first";
  EXPECT_EQ(drain_all(*array).size(), 1u);
}

TEST_F(WaitTest, WakesAtEveryFifthEventIfAsked) {
  KernelEventArrayOptions options = silent();
  options.wakeup = {.every_n_events = 5};
  const auto array = open(options);
  PinToCpu pin(online_[0]);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) generator_->output(24);
    EXPECT_FALSE(readable(array->fd(), 50));
    generator_->output(24);
    EXPECT_TRUE(readable(array->fd(), 1000));
    EXPECT_EQ(drain_all(*array).size(), 5u);
    epoll_event event;
    epoll_wait(array->fd(), &event, 1, 0);
  }
}

TEST_F(WaitTest, WakesWhenTheWatermarkIsExceeded) {
  KernelEventArrayOptions options{
      .size = {.bytes_per_cpu = 8192}, .wakeup = {.watermark_bytes = 1024}, .wait = {.sweep = 0ns}};
  const auto array = open(options);
  PinToCpu pin(online_[0]);
  std::vector<int> woke_at;
  for (int i = 1; i <= 66; ++i) {
    generator_->output(20);  // 32 bytes in the ring
    epoll_event event;
    if (epoll_wait(array->fd(), &event, 1, 10) == 1) woke_at.push_back(i * 32);
  }
  EXPECT_EQ(woke_at, (std::vector<int>{1056, 2080})) << "strictly above, then one watermark on";
}

TEST_F(WaitTest, GivesTheRestAtOnceAfterAnEarlyStop) {
  KernelEventArrayOptions options = silent();
  options.wakeup = {.every_n_events = 1};
  const auto array = open(options);
  PinToCpu pin(online_[0]);
  for (int i = 0; i < 3; ++i) generator_->output(24);
  ASSERT_EQ(array->wait(1s).value(), WaitResult::kReady);
  EXPECT_EQ(array->drain({}, [](uint32_t, const Record&) { return false; }), 1u);
  epoll_event event;
  while (epoll_wait(array->fd(), &event, 1, 0) > 0) {
  }  // the kernel's readiness is gone
  EXPECT_EQ(array->wait(kForever).value(), WaitResult::kReady);
  EXPECT_EQ(drain_all(*array).size(), 2u);
}

TEST_F(WaitTest, WorksInsideAForeignEpoll) {
  KernelEventArrayOptions options = silent();
  options.wakeup = {.every_n_events = 1};
  const auto array = open(options);
  const Fd outer(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event = {EPOLLIN, {}};
  ASSERT_EQ(epoll_ctl(outer.get(), EPOLL_CTL_ADD, array->fd(), &event), 0);
  PinToCpu pin(online_[0]);
  for (int i = 0; i < 100; ++i) {
    generator_->output(24);
    ASSERT_EQ(epoll_wait(outer.get(), &event, 1, 1000), 1);
    ASSERT_EQ(drain_all(*array).size(), 1u);
  }
}

TEST_F(WaitTest, SweepsWhatTheWatermarkLeaves) {
  KernelEventArrayOptions options;
  options.wait.sweep = 20ms;
  const auto array = open(options);
  std::thread producer([&] {
    PinToCpu pin(online_[0]);
    std::this_thread::sleep_for(30ms);
    Generator::fire(24);
  });
  const auto start = Clock::now();
  EXPECT_EQ(array->wait(5s).value(), WaitResult::kReady);
  EXPECT_LT(Clock::now() - start, 2s);
  producer.join();
  EXPECT_EQ(drain_all(*array).size(), 1u);
}

TEST_F(WaitTest, WaitsAsLongAsAsked) {
  const auto array = open();
  auto start = Clock::now();
  EXPECT_EQ(array->wait(0ns).value(), WaitResult::kTimeout);
  EXPECT_LT(Clock::now() - start, 95ms);
  start = Clock::now();
  EXPECT_EQ(array->wait(100ms).value(), WaitResult::kTimeout);
  EXPECT_GE(Clock::now() - start, 95ms);
  EXPECT_LT(Clock::now() - start, 2s);
  PinToCpu pin(online_[0]);
  generator_->output(24);
  EXPECT_EQ(array->wait(100ms).value(), WaitResult::kReady);
}

TEST_F(WaitTest, GoesOnWaitingThroughSignals) {
  const auto array = open(silent());
  struct sigaction action = {}, before = {};
  action.sa_handler = [](int) {};
  sigaction(SIGALRM, &action, &before);
  const itimerval every_ms = {{0, 1000}, {0, 1000}}, never = {};
  setitimer(ITIMER_REAL, &every_ms, nullptr);
  const auto start = Clock::now();
  const auto result = array->wait(200ms);
  const auto elapsed = Clock::now() - start;
  KernelEventArrayOptions options = silent();
  options.wait.return_on_signal = true;
  const auto surfacing = open(options)->wait(5s);
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(*result, WaitResult::kTimeout);
  EXPECT_GE(elapsed, 200ms);
  EXPECT_LT(elapsed, 2s) << "signals do not start the time anew";
  EXPECT_EQ(surfacing.value(), WaitResult::kInterrupted);
}

// On a machine that others use as well, a thread may not run at once; nearly always it does.
TEST_F(WaitTest, CloseWakesAWaitingThread) {
  int slow = 0;
  for (int round = 0; round < 1000; ++round) {
    const auto array = open(one_page());
    std::thread waiter([&] { EXPECT_EQ(array->wait(kForever).value(), WaitResult::kClosed); });
    if (round % 4 != 0) std::this_thread::sleep_for(std::chrono::microseconds(round % 50 * 10));
    const auto start = Clock::now();
    array->close();
    waiter.join();
    slow += Clock::now() - start > 100ms;
    ASSERT_EQ(array->wait(0ns).value(), WaitResult::kClosed);
    array->close();
  }
  EXPECT_LE(slow, 50) << "of 1,000";
}

TEST_F(WaitTest, NoConsumerStartsAfterCloseReturned) {
  for (int round = 0; round < 100; ++round) {
    const auto array = open();
    std::atomic<bool> stop = false, closed = false;
    std::thread producer([&] {
      PinToCpu pin(online_[0]);
      while (!stop) Generator::fire(24);
    });
    std::atomic<uint64_t> late = 0;
    std::thread consumer([&] {
      while (array->wait(kForever).value() == WaitResult::kReady)
        array->drain({}, [&](uint32_t, const Record&) { late += closed; });
    });
    std::this_thread::sleep_for(std::chrono::microseconds(round * 20));
    array->close();
    closed = true;
    consumer.join();
    stop = true;
    producer.join();
    ASSERT_EQ(late, 0u);
  }
}

TEST_F(WaitTest, AConsumerMayClose) {
  const auto array = open();
  PinToCpu pin(online_[0]);
  for (int i = 0; i < 5; ++i) generator_->output(24);
  EXPECT_EQ(array->drain({}, [&](uint32_t, const Record&) { array->close(); }), 1u);
  EXPECT_EQ(array->wait(kForever).value(), WaitResult::kClosed);
}

TEST_F(WaitTest, FlushDeliversWhatLiesBelowTheWatermark) {
  const auto array = open(silent());
  std::atomic<int> delivered = 0, flushed = 0;
  std::thread reader([&] {
    for (;;) {
      switch (array->wait(kForever).value()) {
        case WaitResult::kReady:
          delivered += static_cast<int>(array->drain({}, [](uint32_t, const Record&) {}));
          break;
        case WaitResult::kFlushed:
          EXPECT_EQ(delivered, (flushed + 1) * 10);
          ++flushed;
          break;
        default:
          return;
      }
    }
  });
  PinToCpu pin(online_[0]);
  for (int round = 1; round <= 20; ++round) {
    for (int i = 0; i < 10; ++i) generator_->output(24);
    ASSERT_TRUE(array->flush());
    while (flushed < round) std::this_thread::yield();
  }
  array->close();
  reader.join();
  EXPECT_FALSE(array->flush());
}

}  // namespace
}  // namespace v0
}  // namespace dwell
