#include "probe/scheduler_code.h"

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <utility>

namespace dwell::probe {
namespace {

constexpr uint64_t kText = 0xffffffff82000000;
constexpr uint64_t kSwitch = kText, kSchedule = kText + 0x100, kSlow = kText + 0x200,
                   kWrapper = kText + 0x300, kLock = kText + 0x400, kEnd = kText + 0x500;
constexpr uint64_t kWalked = 0xffffffff81300010;  // the caller of the lock, outside the scheduler

// Code in which schedule calls __schedule, the lock's slow path calls schedule, a wrapper jumps to
// the slow path, and the lock calls the wrapper. Each branch stands 0x10 into its function.
class SchedulerCodeTest : public testing::Test {
 protected:
  SchedulerCodeTest() : bytes_(kEnd - kText, 0x90) {
    branch(kSchedule, 0xe8, kSwitch);
    branch(kSlow, 0xe8, kSchedule);
    branch(kWrapper, 0xe9, kSlow);
    branch(kLock, 0xe8, kWrapper);
  }

  void branch(uint64_t function, uint8_t opcode, uint64_t target) {
    const uint64_t at = function + 0x10;
    const auto distance = static_cast<int32_t>(target - at - 5);
    bytes_[at - kText] = opcode;
    std::memcpy(&bytes_[at - kText + 1], &distance, sizeof distance);
  }

  SchedulerCode code() const {
    return {{kText, kEnd},
            {{kSwitch, "__schedule"},
             {kSchedule, "schedule"},
             {kSlow, "__mutex_lock.constprop.0"},
             {kWrapper, "__mutex_lock_slowpath"},
             {kLock, "mutex_lock"}},
            bytes_};
  }

  static uint64_t after_branch(uint64_t function) { return function + 0x15; }

  // A sleeping stack: the switch, and what is given above it.
  static dwell_kernel_stack_sample sample(std::initializer_list<uint64_t> above) {
    dwell_kernel_stack_sample s = {};
    s.count = 2;
    s.ips[0] = kWalked;
    s.stack[DWELL_SAVED_FRAME_WORDS] = kSwitch + 0x50;
    s.words = DWELL_SAVED_FRAME_WORDS + 1;
    for (const uint64_t word : above) s.stack[s.words++] = word;
    return s;
  }

  std::vector<uint8_t> bytes_;
};

using Frames = std::vector<uint64_t>;

TEST_F(SchedulerCodeTest, FindsTheLockBetweenTheSwitchAndTheWalkedStack) {
  const auto sleeping =
      sample({0, after_branch(kSchedule), 7, after_branch(kSlow), after_branch(kLock), kWalked});
  EXPECT_EQ(code().frames_of(sleeping), (Frames{after_branch(kSlow), after_branch(kLock)}))
      << "through the wrapper that only jumps, and without schedule itself";
}

TEST_F(SchedulerCodeTest, PassesOverStaleReturnAddresses) {
  const auto sleeping =
      sample({after_branch(kLock), after_branch(kSchedule), after_branch(kSchedule), kSlow + 0x30,
              after_branch(kSlow), kWalked, after_branch(kLock)});
  EXPECT_EQ(code().frames_of(sleeping), Frames{after_branch(kSlow)})
      << "a frame returns behind a call of the one below it, and stands below the walked stack";
}

TEST_F(SchedulerCodeTest, TakesACallIntoThePaddingBeforeAFunction) {
  branch(kSlow, 0xe8, kSchedule - 16);
  EXPECT_EQ(code().frames_of(sample({after_branch(kSchedule), after_branch(kSlow), kWalked})),
            Frames{after_branch(kSlow)});
  branch(kSlow, 0xe8, kSchedule - 17);
  EXPECT_EQ(code().frames_of(sample({after_branch(kSchedule), after_branch(kSlow), kWalked})),
            Frames{});
}

TEST_F(SchedulerCodeTest, SaysNothingWhereItCannotKnow) {
  EXPECT_EQ(code().frames_of(sample({after_branch(kSchedule), after_branch(kSlow)})), Frames{})
      << "the walked stack is not there";
  EXPECT_EQ(code().frames_of(sample({kWalked})), Frames{}) << "schedule was called from outside";
  dwell_kernel_stack_sample empty = {};
  EXPECT_EQ(code().frames_of(empty), Frames{});
  SchedulerCode unread = code();
  unread.set_bytes({});
  EXPECT_EQ(unread.frames_of(sample({after_branch(kSchedule), after_branch(kSlow), kWalked})),
            Frames{});
  bytes_.resize(0x212);  // read in part: no call is found beyond
  EXPECT_EQ(code().frames_of(sample({after_branch(kSchedule), after_branch(kSlow), kWalked})),
            Frames{});
}

TEST_F(SchedulerCodeTest, IgnoresWordsFromWildAddresses) {
  EXPECT_EQ(code().frames_of(sample({0, 1, 4, kText, kText + 1, kEnd, kEnd + 4, ~0ull, kWalked})),
            Frames{});
}

TEST_F(SchedulerCodeTest, FindsAFrameThatWasEnteredByAnIndirectCall) {
  // The lock calls the slow path through a register.
  bytes_[kLock - kText + 0x13] = 0xff;
  bytes_[kLock - kText + 0x14] = 0xd0;
  const auto before = [](uint64_t target) {
    std::vector<uint8_t> call = {0xe8, 0, 0, 0, 0};
    const auto distance = static_cast<int32_t>(target - kWalked);
    std::memcpy(&call[1], &distance, sizeof distance);
    return call;
  };
  const auto sleeping =
      sample({after_branch(kSchedule), after_branch(kSlow), after_branch(kLock), kWalked});
  EXPECT_EQ(code().frames_of(sleeping, before(kLock)),
            (Frames{after_branch(kSlow), after_branch(kLock)}));
  EXPECT_EQ(code().frames_of(sleeping, before(kSlow)), Frames{after_branch(kSlow)})
      << "the slow path was called from outside: the other word is stale";
  EXPECT_EQ(code().frames_of(sleeping, before(kSchedule)), Frames{after_branch(kSlow)})
      << "no word leads to the walked address";
  EXPECT_EQ(code().frames_of(sleeping), Frames{after_branch(kSlow)}) << "nothing is guessed";
}

TEST_F(SchedulerCodeTest, KnowsTheSwitchByItsNames) {
  EXPECT_TRUE(code().is_switch(kSwitch + 0x50));
  EXPECT_TRUE(code().is_switch(after_branch(kSchedule)));
  EXPECT_FALSE(code().is_switch(after_branch(kLock)));
  EXPECT_FALSE(code().is_switch(kWalked));
  EXPECT_FALSE(SchedulerCode().is_switch(kSwitch + 0x50));
}

}  // namespace
}  // namespace dwell::probe
