#include "probe/signature.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>

#include "probe/learner.h"
#include "probe/made_up_kernel.h"

namespace dwell::probe {
namespace {

constexpr uint64_t kSwitch = 0xffffffff81801000;    // in __schedule: on every sleeping stack
constexpr uint64_t kSchedule = 0xffffffff81802000;  // in schedule
constexpr uint64_t kTimeout = 0xffffffff81803000;   // in schedule_timeout
constexpr uint64_t kPoll = 0xffffffff81300000, kSyscall = 0xffffffff81200000,
                   kEntry = 0xffffffff81000130;

using Slots = std::initializer_list<std::pair<size_t, uint64_t>>;

// A sleeping stack of `size` words: zero but for the saved frame's end and what is given.
Sleeper sleeper(std::vector<uint64_t> walk, Slots slots, size_t size = 100) {
  Sleeper s = {.walk = std::move(walk), .words = std::vector<uint64_t>(size), .walked_hash = 77};
  for (const auto& [slot, word] : slots) s.words[slot] = word;
  return s;
}

std::optional<StackEvidence> evidence_of(const Sleeper& sleeper) {
  return read_evidence(sample_of(sleeper), kSchedulerText);
}

// What several samples of one stack teach.
std::optional<dwell_signature> learn(const std::vector<Sleeper>& sleepers) {
  std::optional<StackEvidence> all = evidence_of(sleepers.at(0));
  if (!all) return std::nullopt;
  for (const Sleeper& other : sleepers) {
    const auto evidence = evidence_of(other);
    if (!evidence || !same_stack(*all, *evidence)) return std::nullopt;
    confirm(*all, *evidence);
  }
  return conclude(*all);
}

std::vector<uint16_t> slots_of(const dwell_signature& signature) {
  return {signature.slot, signature.slot + signature.pairs};
}

TEST(Signature, ComparesEveryReturnAddressButTheOutermost) {
  const Sleeper poll =
      sleeper({kPoll, kSyscall, kEntry},
              {{6, kSwitch}, {9, kSchedule}, {15, kPoll}, {20, kSyscall}, {60, kEntry}});
  const auto signature = learn({poll});
  ASSERT_TRUE(signature);
  EXPECT_EQ(slots_of(*signature), (std::vector<uint16_t>{6, 9, 15, 20}));
  EXPECT_EQ(signature->words, 21u) << "nothing above the last slot is read";
  EXPECT_EQ(signature->walked_hash, 77u);
  EXPECT_TRUE(matches(*signature, poll.words));
  for (const size_t slot : {6, 9, 15, 20}) {
    Sleeper other = poll;
    other.words[slot] += 1;
    EXPECT_FALSE(matches(*signature, other.words)) << slot;
  }
}

TEST(Signature, TakesNoNoticeOfTheRandomPlaceOfTheOutermostAddress) {
  const auto at = [](size_t place) {
    return sleeper({kPoll, kEntry}, {{6, kSwitch}, {15, kPoll}, {place, kEntry}});
  };
  const auto signature = learn({at(40), at(52)});
  ASSERT_TRUE(signature);
  EXPECT_TRUE(matches(*signature, at(70).words));
}

TEST(Signature, ComparesAnAmbiguousAddressInAllItsPlaces) {
  const Sleeper twice =
      sleeper({kPoll, kSyscall, kEntry},
              {{6, kSwitch}, {10, kPoll}, {15, kPoll}, {20, kSyscall}, {30, kSyscall}});
  const auto signature = learn({twice});
  ASSERT_TRUE(signature);
  EXPECT_EQ(slots_of(*signature), (std::vector<uint16_t>{6, 10, 15, 20, 30}));
}

TEST(Signature, DropsStaleWordsThatAreNotInEverySample) {
  const Sleeper first =
      sleeper({kPoll, kSyscall, kEntry},
              {{6, kSwitch}, {8, kTimeout}, {15, kPoll}, {20, kSyscall}, {30, kSyscall}});
  const Sleeper second =
      sleeper({kPoll, kSyscall, kEntry},
              {{6, kSwitch}, {15, kPoll}, {17, kPoll}, {20, kSyscall}, {41, kSyscall}});
  const auto signature = learn({first, second});
  ASSERT_TRUE(signature);
  EXPECT_EQ(slots_of(*signature), (std::vector<uint16_t>{6, 15, 20}));
}

// schedule() called here, or through schedule_timeout(): the walker shows the same, since it leaves
// both out. A stale copy of the last address lies below its true place, where schedule_timeout's
// is.
TEST(Signature, ComparesSchedulerAddressesAboveAStaleCopyOfTheLastAddress) {
  const Sleeper poll =
      sleeper({kPoll, kEntry}, {{6, kSwitch}, {10, kPoll}, {14, kTimeout}, {20, kPoll}});
  const auto signature = learn({poll, poll, poll});
  ASSERT_TRUE(signature);
  const Sleeper other =
      sleeper({kSyscall, kEntry}, {{6, kSwitch}, {10, kPoll}, {14, kSyscall}, {20, kPoll}});
  EXPECT_FALSE(matches(*signature, other.words)) << "another stack, with stale words of the first";
}

TEST(Signature, TellsStacksApartThatTheWalkerShowsAlike) {
  const Sleeper direct = sleeper({kPoll, kEntry}, {{6, kSwitch}, {9, kSchedule}, {15, kPoll}});
  const Sleeper timed =
      sleeper({kPoll, kEntry}, {{6, kSwitch}, {9, kTimeout}, {12, kSchedule}, {15, kPoll}});
  EXPECT_FALSE(same_stack(*evidence_of(direct), *evidence_of(timed)));
  EXPECT_FALSE(same_stack(*evidence_of(timed), *evidence_of(direct)));
  EXPECT_TRUE(same_stack(*evidence_of(timed), *evidence_of(timed)));
  Sleeper other_walk = direct;
  other_walk.walked_hash++;
  EXPECT_FALSE(same_stack(*evidence_of(direct), *evidence_of(other_walk)));
}

TEST(Signature, LearnsNothingFromAStackThatLacksAnAddress) {
  EXPECT_FALSE(evidence_of(sleeper({kPoll, kSyscall, kEntry}, {{6, kSwitch}, {15, kPoll}})));
  EXPECT_FALSE(
      evidence_of(sleeper({kPoll, kSyscall, kEntry}, {{6, kSwitch}, {15, kSyscall}, {20, kPoll}})))
      << "out of order";
  EXPECT_FALSE(evidence_of(sleeper({kPoll, kEntry}, {{7, kSwitch}, {15, kPoll}})))
      << "the first address is not the scheduler's";
  EXPECT_FALSE(evidence_of(sleeper({kPoll, kEntry}, {{3, kPoll}, {6, kSwitch}})))
      << "saved registers are no place of an address";
}

TEST(Signature, KnowsTheEdgesOfTheSchedulersCode) {
  const auto first_address = [](uint64_t address) {
    return evidence_of(sleeper({kPoll, kEntry}, {{6, address}, {15, kPoll}})).has_value();
  };
  EXPECT_FALSE(first_address(kSchedulerText.start)) << "a call returns to the next instruction";
  EXPECT_TRUE(first_address(kSchedulerText.start + 1));
  EXPECT_TRUE(first_address(kSchedulerText.end)) << "a call may be the last instruction";
  EXPECT_FALSE(first_address(kSchedulerText.end + 1));
}

TEST(Signature, LearnsNothingFromCountsOutOfRange) {
  dwell_kernel_stack_sample sample =
      sample_of(sleeper({kPoll, kEntry}, {{6, kSwitch}, {15, kPoll}}));
  for (const uint32_t count : {0u, 1u, DWELL_SIGNATURE_PAIRS + 1u, ~0u}) {
    sample.count = count;
    EXPECT_FALSE(read_evidence(sample, kSchedulerText)) << count;
  }
  sample.count = 2;
  EXPECT_TRUE(read_evidence(sample, kSchedulerText));
}

// The probe could not read the stack: what lies in the record is from an earlier sample.
TEST(Signature, ReadsNoWordsBeyondThoseOfTheSample) {
  dwell_kernel_stack_sample sample =
      sample_of(sleeper({kPoll, kEntry}, {{6, kSwitch}, {15, kPoll}}));
  for (const uint32_t words : {0u, 1u, 5u, 6u, 7u, 15u}) {
    sample.words = words;
    EXPECT_FALSE(read_evidence(sample, kSchedulerText)) << words;
  }
  sample.words = 16;
  EXPECT_TRUE(read_evidence(sample, kSchedulerText));
}

TEST(Signature, LearnsNothingFromAStackThatIsDeeperThanTheSample) {
  Sleeper deep = sleeper({kPoll, kEntry}, {{6, kSwitch}, {15, kPoll}}, DWELL_SIGNATURE_WORDS + 30);
  deep.words[DWELL_SIGNATURE_WORDS + 1] = kPoll;
  EXPECT_FALSE(evidence_of(deep)) << "the true place may be the one that is not in the sample";
  deep.words.resize(DWELL_SIGNATURE_WORDS);
  EXPECT_FALSE(evidence_of(deep)) << "which looks as if it ended there";
  deep.words.resize(DWELL_SIGNATURE_WORDS - 1);
  deep.words.back() = kPoll;
  const auto evidence = evidence_of(deep);
  ASSERT_TRUE(evidence);
  EXPECT_EQ(conclude(*evidence)->words, DWELL_SIGNATURE_WORDS - 1u)
      << "an address in the last word";
  dwell_kernel_stack_sample damaged = sample_of(deep);
  damaged.words = ~0u;
  EXPECT_FALSE(read_evidence(damaged, kSchedulerText));
}

TEST(Signature, TakesAsManyWordsAsFitAndNoMore) {
  Sleeper full = sleeper({kPoll, kEntry}, {{6, kSwitch}});
  for (size_t slot = 7; slot < 6 + DWELL_SIGNATURE_PAIRS; ++slot) full.words[slot] = kPoll;
  const auto signature = learn({full});
  ASSERT_TRUE(signature);
  EXPECT_EQ(signature->pairs, DWELL_SIGNATURE_PAIRS);
  EXPECT_TRUE(matches(*signature, full.words));
  full.words[6 + DWELL_SIGNATURE_PAIRS] = kPoll;
  EXPECT_FALSE(learn({full}));
  const Sleeper fewer = sleeper({kPoll, kEntry}, {{6, kSwitch}, {7, kPoll}});
  EXPECT_TRUE(learn({full, fewer})) << "once another sample has told which of them are stale";
}

// Threads that block in a few ways, a probe that looks for signatures, and user space that learns.
struct Workload {
  explicit Workload(uint64_t seed) : kernel(seed) {
    for (int i = 0; i < 6; ++i) chains.push_back(kernel.random_chain());
  }

  // One wait. Returns whether it was found by signature.
  bool wait() {
    std::vector<uint64_t>& stack = stacks[kernel.below(std::size(stacks))];
    for (uint32_t calls = kernel.below(3); calls > 0; --calls)  // that do not block
      kernel.sleep(stack, kernel.random_chain());
    const size_t way = kernel.below(chains.size());
    const Sleeper asleep = kernel.sleep(stack, chains[way]);
    dwell_signature_key key = {.tid = 0, .cause = static_cast<uint16_t>(way % 2), .way = 0};
    if (const dwell_signature* signature = map.find(key, asleep)) {
      if (signature->walked_hash != asleep.walked_hash) wrong++;
      return true;
    }
    if (key.way < DWELL_SIGNATURE_WAYS) learner.learn({sample_of(asleep, key)});
    return false;
  }

  MadeUpKernel kernel;
  std::vector<Chain> chains;
  std::vector<uint64_t> stacks[4];
  SignatureMap map;
  SignatureLearner learner{
      [this](const auto& key, const auto& signature) { return map.insert(key, signature); },
      kSchedulerText};
  int wrong = 0;
};

TEST(Signature, NeverNamesAnotherStackWhateverTheKernel) {
  int hits = 0, waits = 0;
  size_t signatures = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Workload workload(seed);
    for (int i = 0; i < 1000; ++i) {
      const bool hit = workload.wait();
      if (i < 200) continue;
      hits += hit;
      waits++;
    }
    EXPECT_EQ(workload.wrong, 0) << "seed " << seed;
    signatures += workload.map.size();
  }
  EXPECT_GT(hits, waits * 95 / 100) << "a stack that comes again is recognised";
  EXPECT_LT(signatures, 300u * 12u) << "hardly more signatures than stacks";
}

}  // namespace
}  // namespace dwell::probe
