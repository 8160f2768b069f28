// What every event array does, whoever writes into it: one suite, instantiated for the kernel's and
// for ours (and by whoever makes another). A harness has
//   static std::string unavailable();      reason to skip, or ""
//   explicit Harness(const SuiteOptions&);  opens map and array
//   EventArray& array();
//   int output(uint64_t flags, uint64_t size);  from the CPU the thread is pinned to: 0 or -errno;
//                                               the payload's first 8 bytes count up per harness
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "event_array/cpu_list.h"
#include "event_array/event_array.h"
#include "event_array/event_session.h"
#include "event_array/pin.h"

namespace dwell {
inline namespace v0 {

struct SuiteOptions {
  uint64_t ring_bytes = 4096;
  bool overwrite = false;
  uint64_t watermark_bytes = 0;
  std::chrono::nanoseconds sweep = std::chrono::milliseconds(100);
};

template <typename Harness>
class EventArraySuite : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Harness::unavailable(); !why.empty()) GTEST_SKIP() << why;
    online_ = read_cpu_list("online").value();
  }
  void open(const SuiteOptions& options = {}) { harness_ = std::make_unique<Harness>(options); }
  EventArray& array() { return harness_->array(); }
  int output(uint64_t size, uint64_t flags = ring::kCurrentCpu) {
    return harness_->output(flags, size);
  }
  static constexpr uint64_t kLostMark = uint64_t{1} << 63;
  // First words of the samples; LOST records as kLostMark + count.
  std::vector<uint64_t> drain(const Budget& budget = {}) {
    std::vector<uint64_t> seen;
    array().drain(budget, [&](uint32_t, const Record& record) { seen.push_back(word(record)); });
    return seen;
  }
  uint64_t word(const Record& record) {
    if (const auto lost = lost_count(record)) return kLostMark | *lost;
    Sample sample;
    EXPECT_EQ(decode_sample(array().format(), record, sample), SampleCheck::kOk);
    return payload_as<uint64_t>(sample).value_or(kLostMark - 1);
  }

  std::vector<uint32_t> online_;
  std::unique_ptr<Harness> harness_;
};

TYPED_TEST_SUITE_P(EventArraySuite);

TYPED_TEST_P(EventArraySuite, DeliversInOrderOnEachCpu) {
  this->open();
  for (const uint32_t cpu : this->online_) {
    PinToCpu pin(cpu);
    for (int i = 0; i < 3; ++i) ASSERT_EQ(this->output(24), 0);
  }
  std::vector<uint32_t> cpus;
  uint64_t expected = 0;
  this->array().drain({}, [&](uint32_t cpu, const Record& record) {
    EXPECT_EQ(this->word(record), expected++);
    cpus.push_back(cpu);
  });
  ASSERT_EQ(cpus.size(), 3 * this->online_.size());
  for (size_t i = 0; i < cpus.size(); ++i) EXPECT_EQ(cpus[i], this->online_[i / 3]);
}

TYPED_TEST_P(EventArraySuite, ChecksTheIndex) {
  this->open();
  PinToCpu pin(this->online_[0]);
  EXPECT_EQ(this->output(24, this->online_[0]), 0);
  EXPECT_EQ(this->output(24, 0xfffffffe), -E2BIG);
  EXPECT_EQ(this->output(24, 1ull << 40 | ring::kCurrentCpu), -EINVAL);
  if (this->online_.size() > 1) {
    EXPECT_EQ(this->output(24, this->online_[1]), -EOPNOTSUPP);
  }
  EXPECT_EQ(this->drain().size(), 1u);
}

TYPED_TEST_P(EventArraySuite, HoldsAllButOneCell) {
  this->open();
  PinToCpu pin(this->online_[0]);
  int held = 0;
  while (this->output(20) == 0) ++held;  // 32 bytes each
  EXPECT_EQ(held, 4088 / 32);
  EXPECT_EQ(this->drain().size(), static_cast<size_t>(held));
}

TYPED_TEST_P(EventArraySuite, TellsLossBeforeTheNextSampleAndExactlyAtAnyTime) {
  this->open();
  PinToCpu pin(this->online_[0]);
  uint64_t refused = 0;
  for (int i = 0; i < 300; ++i) refused += this->output(64) == -ENOSPC;
  ASSERT_GT(refused, 100u);
  RingStats stats = this->array().stats(this->online_[0]);
  EXPECT_EQ(stats.lost_exact, refused);
  EXPECT_EQ(stats.lost_pending, refused);
  this->drain();
  ASSERT_EQ(this->output(24), 0);
  EXPECT_EQ(this->drain(), (std::vector<uint64_t>{this->kLostMark | refused, 300}));
  stats = this->array().stats(this->online_[0]);
  EXPECT_EQ(stats.lost_reported, refused);
  EXPECT_EQ(stats.lost_pending, 0u);
}

TYPED_TEST_P(EventArraySuite, CountsARecordLargerThanTheRing) {
  this->open();
  PinToCpu pin(this->online_[0]);
  EXPECT_EQ(this->output(4077), -ENOSPC);
  EXPECT_EQ(this->array().stats(this->online_[0]).lost_exact, 1u);
}

TYPED_TEST_P(EventArraySuite, RefusesWhilePaused) {
  this->open();
  PinToCpu pin(this->online_[0]);
  ASSERT_TRUE(this->array().pause());
  EXPECT_EQ(this->output(24), -ENOSPC);
  ASSERT_TRUE(this->array().resume());
  EXPECT_EQ(this->output(24), 0);
  EXPECT_EQ(this->drain(), (std::vector<uint64_t>{this->kLostMark | 1, 1}));
}

TYPED_TEST_P(EventArraySuite, StopsAndGoesOn) {
  this->open();
  PinToCpu pin(this->online_[0]);
  for (int i = 0; i < 25; ++i) this->output(24);
  EXPECT_EQ(this->array().drain({}, [](uint32_t, const Record&) { return false; }), 1u);
  EXPECT_EQ(this->drain({.max_records = 10}).size(), 10u);
  EXPECT_EQ(this->drain({.max_records = 10}).size(), 10u);
  EXPECT_EQ(this->drain({.max_records = 10}).size(), 4u);
  EXPECT_FALSE(this->array().has_data());
}

TYPED_TEST_P(EventArraySuite, GivesSpaceBackWhileABatchRuns) {
  this->open();
  PinToCpu pin(this->online_[0]);
  while (this->output(20) == 0) {
  }
  uint64_t seen = 0, more = 0;
  this->array().drain({}, [&](uint32_t, const Record&) {
    if (++seen == 100) more += this->output(20) == 0;
  });
  EXPECT_EQ(more, 1u);
}

TYPED_TEST_P(EventArraySuite, WaitsFlushesAndCloses) {
  using namespace std::chrono_literals;
  this->open({.watermark_bytes = 2048, .sweep = 0ns});
  EventArray& array = this->array();
  EXPECT_EQ(array.wait(20ms).value(), WaitResult::kTimeout);
  PinToCpu pin(this->online_[0]);
  this->output(24);
  EXPECT_EQ(array.wait(kForever).value(), WaitResult::kReady);
  ASSERT_TRUE(array.flush());
  EXPECT_EQ(array.wait(kForever).value(), WaitResult::kReady);
  EXPECT_EQ(this->drain().size(), 1u);
  EXPECT_EQ(array.wait(kForever).value(), WaitResult::kFlushed);
  std::thread closer([&] {
    std::this_thread::sleep_for(5ms);
    array.close();
  });
  EXPECT_EQ(array.wait(kForever).value(), WaitResult::kClosed);
  closer.join();
  EXPECT_NE(this->output(24), 0);
  EXPECT_EQ(this->drain().size(), 0u);
}

TYPED_TEST_P(EventArraySuite, SnapshotsNewestFirst) {
  this->open({.overwrite = true});
  PinToCpu pin(this->online_[0]);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(this->output(24), 0);
  std::vector<uint64_t> words;
  ASSERT_TRUE(this->array().snapshot(this->online_[0], [&](const Record& record) {
    words.push_back(this->word(record));
    return true;
  }));
  ASSERT_GT(words.size(), 90u);
  for (size_t i = 0; i < words.size(); ++i) ASSERT_EQ(words[i], 999 - i);
  EXPECT_EQ(this->array().stats(this->online_[0]).lost_exact.value_or(0), 0u);
  EXPECT_FALSE(this->array().has_data());
}

TYPED_TEST_P(EventArraySuite, FeedsASession) {
  this->open();
  PinToCpu pin(this->online_[0]);
  for (int i = 0; i < 500; ++i) this->output(24);
  uint64_t events = 0, lost = 0;
  SessionCallbacks callbacks;
  callbacks.on_event = [&](const Event& event) {
    EXPECT_TRUE(event.as<uint64_t>().has_value());
    ++events;
    return Verdict::kContinue;
  };
  callbacks.on_lost = [&](uint32_t, uint64_t n) { lost += n; };
  const auto session = EventSession::create(this->array(), std::move(callbacks));
  ASSERT_TRUE(session);
  (*session)->consume();
  this->output(24);
  (*session)->consume();
  EXPECT_EQ(events + lost, 501u);
  EXPECT_EQ((*session)->stats().received, events);
}

// The producer hops from CPU to CPU while the reader drains all of them.
TYPED_TEST_P(EventArraySuite, AddsUpUnderConcurrentLoad) {
  this->open({.ring_bytes = 16 << 10});
  std::atomic<bool> done = false;
  uint64_t ok = 0, refused = 0;
  std::thread producer([&] {
    for (size_t hop = 0; hop < 100; ++hop) {
      PinToCpu pin(this->online_[hop % this->online_.size()]);
      for (int i = 0; i < 1000; ++i) {
        const int result = this->output(24);
        ok += result == 0;
        refused += result == -ENOSPC;
      }
    }
    done = true;
  });
  uint64_t samples = 0;
  for (bool last = false; !last;) {
    last = done;
    this->array().drain({}, [&](uint32_t, const Record& record) { samples += record.is_sample(); });
  }
  producer.join();
  EXPECT_EQ(samples, ok);
  EXPECT_EQ(this->array().total_stats().lost_exact, refused);
  EXPECT_EQ(ok + refused, 100'000u);
}

REGISTER_TYPED_TEST_SUITE_P(EventArraySuite, DeliversInOrderOnEachCpu, ChecksTheIndex,
                            HoldsAllButOneCell, TellsLossBeforeTheNextSampleAndExactlyAtAnyTime,
                            CountsARecordLargerThanTheRing, RefusesWhilePaused, StopsAndGoesOn,
                            GivesSpaceBackWhileABatchRuns, WaitsFlushesAndCloses,
                            SnapshotsNewestFirst, FeedsASession, AddsUpUnderConcurrentLoad);

}  // namespace v0
}  // namespace dwell
