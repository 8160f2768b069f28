// Sessions over kernel rings.
#include <thread>

#include "event_array/event_session.h"
#include "event_array/kernel_fixture.h"

namespace dwell {
inline namespace v0 {
namespace {

using namespace std::chrono_literals;
using Why = PollResult::Why;

class SessionTest : public KernelArrayTest {
 protected:
  void start(const KernelEventArrayOptions& array, const SessionOptions& session = {}) {
    array_ = open(array);
    ASSERT_NE(array_, nullptr);
    SessionCallbacks callbacks;
    callbacks.on_event = [this](const Event& event) {
      const auto front = event.as<generated>();
      events_.push_back(front.value_or(generated{}));
      late_ += event.late;
      return on_event_ ? on_event_() : Verdict::kContinue;
    };
    callbacks.on_lost = [this](uint32_t, uint64_t lost) {
      EXPECT_GT(lost, 0u);
      lost_ += lost;
    };
    callbacks.on_trouble = [this](uint32_t, Trouble what, uint64_t value) {
      troubles_.push_back({what, value});
    };
    auto created = EventSession::create(*array_, std::move(callbacks), session);
    ASSERT_TRUE(created) << created.error().message;
    session_ = std::move(*created);
  }

  std::unique_ptr<KernelEventArray> array_;
  std::unique_ptr<EventSession> session_;
  std::vector<generated> events_;
  std::vector<std::pair<Trouble, uint64_t>> troubles_;
  std::function<Verdict()> on_event_;
  uint64_t lost_ = 0;
  uint64_t late_ = 0;
};

TEST_F(SessionTest, DeliversTypedEventsAndCounts) {
  start({});
  PinToCpu pin(online_[0]);
  for (int i = 0; i < 10; ++i) generator_->output(sizeof(generated) + 3);
  const auto result = session_->poll(1s);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->events, 10u);
  EXPECT_EQ(result->why, Why::kEvents);
  EXPECT_EQ(events_[9].seq, 9u);
  EXPECT_EQ(session_->stats().received, 10u);
  EXPECT_EQ(session_->stats().rings.samples, 10u);
  EXPECT_EQ(session_->poll(0ns)->why, Why::kTimeout);
}

TEST_F(SessionTest, TellsLossBeforeTheSampleBehindIt) {
  start(one_page());
  PinToCpu pin(online_[0]);
  for (int i = 0; i < 1000; ++i) generator_->output(64);
  session_->consume();
  const size_t before = events_.size();
  ASSERT_EQ(generator_->output(64), 0);
  on_event_ = [&] {
    EXPECT_EQ(lost_, 1000 - before);
    return Verdict::kContinue;
  };
  EXPECT_EQ(session_->consume(), 1u);
}

TEST_F(SessionTest, KeepsApplicationDropsApartFromLoss) {
  start({});
  PinToCpu pin(online_[0]);
  for (int i = 0; i < 100; ++i) generator_->output(24);
  size_t room = 30;
  on_event_ = [&] { return room > 0 ? (--room, Verdict::kContinue) : Verdict::kDropped; };
  session_->consume();
  const SessionStats stats = session_->stats();
  EXPECT_EQ(stats.received, 30u);
  EXPECT_EQ(stats.dropped, 70u);
  EXPECT_EQ(stats.rings.lost_reported + stats.rings.lost_pending, 0u);
}

TEST_F(SessionTest, GivesTheRestAfterAStopVerdict) {
  start({});
  PinToCpu pin(online_[0]);
  for (int i = 0; i < 3; ++i) generator_->output(24);
  on_event_ = [&] { return events_.size() == 1 ? Verdict::kStop : Verdict::kContinue; };
  EXPECT_EQ(session_->poll(1s)->events, 1u);
  EXPECT_EQ(session_->poll(kForever)->events, 2u);
}

TEST_F(SessionTest, DeliversDataThoughTheDeadlineIsPast) {
  start({});
  PinToCpu pin(online_[0]);
  generator_->output(24);
  session_->set_deadline(EventSession::Clock::now() - 1s);
  EXPECT_EQ(session_->poll(kForever)->why, Why::kEvents);
  EXPECT_EQ(session_->poll(kForever)->why, Why::kDeadline);
  session_->set_deadline(EventSession::Clock::now() + 30ms);
  EXPECT_EQ(session_->poll(kForever)->why, Why::kDeadline);
  session_->set_deadline(std::nullopt);
  EXPECT_EQ(session_->poll(10ms)->why, Why::kTimeout);
}

TEST_F(SessionTest, StopsAndFlushesAndClosesFromAnotherThread) {
  start({});
  for (const auto& [act, why] : std::vector<std::pair<std::function<void()>, Why>>{
           {[&] { session_->stop(); }, Why::kStopped},
           {[&] { (void)array_->flush(); }, Why::kFlushed},
           {[&] { array_->close(); }, Why::kClosed}}) {
    std::thread other([&] {
      std::this_thread::sleep_for(5ms);
      act();
    });
    EXPECT_EQ(session_->poll(kForever)->why, why);
    other.join();
  }
}

TEST_F(SessionTest, ReadsOneEventAtATime) {
  start({});
  PinToCpu pin(online_[0]);
  for (int i = 0; i < 5; ++i) generator_->output(24);
  OwnedEvent event;
  for (uint64_t i = 0; i < 5; ++i) {
    ASSERT_EQ(session_->read(event, 1s)->events, 1u);
    EXPECT_EQ(event.as<generated>()->seq, i);
    EXPECT_EQ(event.cpu, online_[0]);
  }
  EXPECT_EQ(session_->read(event, 0ns)->why, Why::kTimeout);
  EXPECT_TRUE(events_.empty());
}

TEST_F(SessionTest, NamesAnOversizePayload) {
  start({.size = {.bytes_per_cpu = 512 << 10}});
  PinToCpu pin(online_[0]);
  ASSERT_EQ(generator_->output(65576), 0);
  generator_->output(24);
  while (array_->has_data()) session_->consume();
  ASSERT_FALSE(troubles_.empty());
  EXPECT_EQ(troubles_[0].first, Trouble::kOversize);
  EXPECT_EQ(session_->stats().oversize, 1u);
  EXPECT_EQ(events_.size(), 1u) << "its neighbour is sound";
}

TEST_F(SessionTest, TakesExactLengthsFromAPrefix) {
  start({}, {.length = SessionOptions::Length::kPrefixed});
  PinToCpu pin(online_[0]);
  generator_->output(24);  // first word: low half of seq, 0
  std::vector<size_t> sizes;
  on_event_ = [&] { return Verdict::kContinue; };
  EXPECT_EQ(session_->consume(), 1u);
  for (int i = 0; i < 100; ++i) generator_->output(24);
  session_->consume();
  EXPECT_EQ(session_->stats().bad_length, 101u - 25u) << "lengths 25 and more do not fit 24 + pad";
}

TEST_F(SessionTest, RefusesToOrderWithoutTimestamps) {
  array_ = open();
  EXPECT_FALSE(EventSession::create(*array_, {}, {.ordered = true}));
}

// One thread hops between two CPUs: its sequence is the order of time.
TEST_F(SessionTest, OrdersAMillionEventsOverTwoCpus) {
  if (online_.size() < 2) GTEST_SKIP() << "needs two CPUs";
  constexpr uint64_t kEvents = 1'000'000, kPerHop = 50;
  start({.size = {.bytes_per_cpu = 8 << 20}, .timestamps = true}, {.ordered = true});
  std::atomic<bool> done = false;
  std::thread producer([&] {
    for (uint64_t i = 0; i < kEvents / kPerHop; ++i) {
      PinToCpu pin(online_[i % 2]);
      for (uint64_t k = 0; k < kPerHop; ++k) Generator::fire(24);
    }
    done = true;
  });
  uint64_t last_ns = 0, unordered = 0, seen = 0;
  uint64_t next_seq[GENERATOR_CPUS] = {};
  on_event_ = [&] {
    const generated& g = events_.back();
    unordered += g.ktime_ns < last_ns || g.seq != next_seq[g.cpu];
    next_seq[g.cpu] = g.seq + 1;
    last_ns = g.ktime_ns;
    ++seen;
    events_.clear();
    return Verdict::kContinue;
  };
  while (!done) ASSERT_TRUE(session_->poll(50ms));
  producer.join();
  while (array_->has_data()) session_->consume();
  session_->drain_order();
  EXPECT_EQ(seen + generator_->total(generator_->counts().no_space), kEvents);
  EXPECT_EQ(generator_->total(generator_->counts().no_space), 0u) << "8 MiB rings were too small";
  EXPECT_EQ(unordered, 0u);
  EXPECT_EQ(session_->stats().late, 0u);
}

}  // namespace
}  // namespace v0
}  // namespace dwell
