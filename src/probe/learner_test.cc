#include "probe/learner.h"

#include <gtest/gtest.h>

#include "probe/made_up_kernel.h"

namespace dwell::probe {
namespace {

constexpr uint64_t kSwitch = kSchedulerText.start + 0x100, kOuter = 0xffffffff81000130;

class LearnerTest : public testing::Test {
 protected:
  // The n-th way to sleep: one function between the scheduler and the outermost, at its own place.
  static Sleeper asleep(uint64_t n) {
    Sleeper sleeper = {.walk = {0xffffffff81100000 + n, kOuter},
                       .words = std::vector<uint64_t>(60),
                       .walked_hash = 1000 + n};
    sleeper.words[DWELL_SAVED_FRAME_WORDS] = kSwitch;
    sleeper.words[20 + n % 20] = sleeper.walk[0];
    return sleeper;
  }
  void send(const Sleeper& sleeper, int times = 1, dwell_signature_key key = {}) {
    const std::vector samples(static_cast<size_t>(times), sample_of(sleeper, key));
    learner_.learn(samples);
  }
  bool knows(const Sleeper& sleeper, dwell_signature_key key = {}) const {
    const dwell_signature* found = map_.find(key, sleeper);
    return found != nullptr && found->walked_hash == sleeper.walked_hash;
  }

  SignatureMap map_;
  SignatureLearner learner_{
      [this](const auto& key, const auto& signature) { return map_.insert(key, signature); },
      kSchedulerText};
};

TEST_F(LearnerTest, NeedsThreeSamplesOfAStack) {
  send(asleep(1));
  send(asleep(2));
  send(asleep(1));
  EXPECT_EQ(map_.size(), 0u);
  send(asleep(1));
  EXPECT_TRUE(knows(asleep(1)));
  EXPECT_FALSE(knows(asleep(2)));
  send(asleep(1), 10);
  EXPECT_EQ(map_.size(), 1u) << "and does not say the same again";
}

TEST_F(LearnerTest, GivesEachStackTheNextWay) {
  for (uint64_t n = 0; n < 3; ++n) send(asleep(n), 3);
  EXPECT_EQ(map_.size(), 3u);
  for (uint64_t n = 0; n < 3; ++n) EXPECT_TRUE(knows(asleep(n))) << n;
}

TEST_F(LearnerTest, LearnsEachCauseAndEachKernelThreadByItself) {
  const dwell_signature_key futex = {.tid = 0, .cause = 202, .way = 0};
  const dwell_signature_key worker = {.tid = 17, .cause = DWELL_CAUSE_KTHREAD, .way = 0};
  send(asleep(1), 2, futex);
  send(asleep(1), 2, worker);
  EXPECT_EQ(map_.size(), 0u);
  send(asleep(1), 1, futex);
  EXPECT_TRUE(knows(asleep(1), futex));
  EXPECT_FALSE(knows(asleep(1), worker));
  send(asleep(1), 1, worker);
  EXPECT_TRUE(knows(asleep(1), worker));
}

TEST_F(LearnerTest, StopsWhenAllWaysAreTaken) {
  for (uint64_t n = 0; n < DWELL_SIGNATURE_WAYS + 3; ++n) send(asleep(n), 3);
  EXPECT_EQ(map_.size(), size_t{DWELL_SIGNATURE_WAYS});
  EXPECT_TRUE(knows(asleep(DWELL_SIGNATURE_WAYS - 1)));
  EXPECT_FALSE(knows(asleep(DWELL_SIGNATURE_WAYS)));
}

TEST_F(LearnerTest, UsesTheSameWayAgainIfTheMapHadNoRoom) {
  map_.entries_max = 0;
  send(asleep(1), 3);
  map_.entries_max = 4096;
  send(asleep(2), 3);
  EXPECT_TRUE(knows(asleep(2))) << "at way 0: the probe stops at the first that is missing";
}

TEST_F(LearnerTest, PublishesAgainWhenASampleRefutesAWord) {
  Sleeper stale = asleep(1);
  stale.words[50] = stale.walk[0];
  send(stale, 3);
  EXPECT_TRUE(knows(stale));
  EXPECT_FALSE(knows(asleep(1))) << "the copy at 50 was in all samples so far";
  send(asleep(1));
  EXPECT_TRUE(knows(asleep(1)));
  EXPECT_EQ(map_.size(), 2u);
}

TEST_F(LearnerTest, TakesInABatchBeforeItPublishes) {
  std::vector<dwell_kernel_stack_sample> batch;
  for (size_t stale = 40; stale < 55; ++stale) {
    Sleeper sleeper = asleep(1);
    for (size_t i = stale; i < 55; ++i) sleeper.words[i] = sleeper.walk[0];
    batch.push_back(sample_of(sleeper));
  }
  learner_.learn(batch);
  EXPECT_EQ(map_.size(), 1u) << "each of the samples refuted a word";
  send(asleep(1));
  EXPECT_TRUE(knows(asleep(1)));
}

TEST_F(LearnerTest, ForgetsStacksSeenOnceWhenThereAreTooMany) {
  send(asleep(0), 2);
  for (uint64_t n = 1; n <= 64; ++n) send(asleep(n));
  send(asleep(0));
  EXPECT_EQ(map_.size(), 0u) << "its first two samples are forgotten";
  send(asleep(0), 2);
  EXPECT_TRUE(knows(asleep(0)));
}

TEST_F(LearnerTest, KeepsNoMoreKeysThanTheProbeHasRoomFor) {
  for (uint32_t tid = 1; tid <= 4096; ++tid)
    send(asleep(1), 1, {.tid = tid, .cause = DWELL_CAUSE_KTHREAD, .way = 0});
  const dwell_signature_key newcomer = {.tid = 5000, .cause = DWELL_CAUSE_KTHREAD, .way = 0};
  send(asleep(1), 3, newcomer);
  EXPECT_FALSE(knows(asleep(1), newcomer));
  const dwell_signature_key known = {.tid = 4096, .cause = DWELL_CAUSE_KTHREAD, .way = 0};
  send(asleep(1), 2, known);
  EXPECT_TRUE(knows(asleep(1), known));
}

TEST_F(LearnerTest, LearnsNothingFromSamplesThatDetermineNoStack) {
  Sleeper torn = asleep(1);
  torn.words[21] = 0;
  send(torn, 5);
  EXPECT_EQ(map_.size(), 0u);
}

}  // namespace
}  // namespace dwell::probe
