#include "event_array/ring_sizes.h"

#include <gtest/gtest.h>

namespace dwell {
inline namespace v0 {
namespace {

constexpr uint64_t kPage = 4096;

uint64_t bytes_for(uint64_t asked, uint64_t page = kPage) {
  return effective_ring_bytes({.bytes_per_cpu = asked}, 2, page).value();
}

TEST(RingBytes, RoundUpToAPowerOfTwoPages) {
  EXPECT_EQ(bytes_for(1), 4096u);
  EXPECT_EQ(bytes_for(4095), 4096u);
  EXPECT_EQ(bytes_for(4096), 4096u);
  EXPECT_EQ(bytes_for(8192), 8192u);
  EXPECT_EQ(bytes_for(12288), 16384u);
  EXPECT_EQ(bytes_for(5 * 4096), 32768u);
  EXPECT_EQ(bytes_for(0), kDefaultRingBytes);
  EXPECT_EQ(bytes_for(8192, 65536), 65536u) << "64 KiB pages";
}

TEST(RingBytes, ShareABudgetWithoutExceedingIt) {
  EXPECT_EQ(effective_ring_bytes({.total_bytes = 1 << 20}, 3, kPage).value(), 256u << 10);
  EXPECT_EQ(effective_ring_bytes({.total_bytes = 1000}, 64, kPage).value(), kPage)
      << "a page each at least";
  EXPECT_FALSE(effective_ring_bytes({.bytes_per_cpu = 1, .total_bytes = 1}, 1, kPage));
}

TEST(RingBytes, AreRefusedBeyondTheLimit) {
  EXPECT_FALSE(effective_ring_bytes({.bytes_per_cpu = uint64_t{1} << 31}, 1, kPage));
  EXPECT_FALSE(effective_ring_bytes({.bytes_per_cpu = UINT64_MAX}, 1, kPage));
}

TEST(Wakeup, DefaultsToAQuarterOfTheRing) {
  EXPECT_EQ(effective_wakeup({}, 4096)->watermark_bytes, 1024u);
  EXPECT_EQ(effective_wakeup({}, 1 << 20)->watermark_bytes, 64u << 10);
}

TEST(Wakeup, ClampsAWatermarkThatNeverFires) {
  const auto wakeup = effective_wakeup({.watermark_bytes = 4024}, 4096);
  ASSERT_TRUE(wakeup);
  EXPECT_EQ(wakeup->watermark_bytes, 2048u);
  EXPECT_TRUE(wakeup->clamped);
  EXPECT_FALSE(effective_wakeup({.watermark_bytes = 2048}, 4096)->clamped);
}

TEST(Wakeup, RefusesAWatermarkThatNeverFiresIfAsked) {
  const auto wakeup = effective_wakeup({.watermark_bytes = 4024, .clamp = false}, 4096);
  ASSERT_FALSE(wakeup);
  EXPECT_NE(wakeup.error().message.find("never fires"), std::string::npos);
  EXPECT_FALSE(effective_wakeup({.every_n_events = 1000, .clamp = false}, 4096));
  EXPECT_EQ(effective_wakeup({.every_n_events = 1000}, 4096)->watermark_bytes, 2048u);
  EXPECT_EQ(effective_wakeup({.every_n_events = 5}, 4096)->every_n_events, 5u);
  EXPECT_FALSE(effective_wakeup({.watermark_bytes = 8, .every_n_events = 5}, 4096));
}

TEST(PayloadWarning, NamesWhatCannotWork) {
  EXPECT_FALSE(payload_warning(100, 4096, true));
  EXPECT_FALSE(payload_warning(4064 - 12, 4096, true));
  const auto wedge = payload_warning(4064 - 12 + 1, 4096, true);
  ASSERT_TRUE(wedge);
  EXPECT_NE(wedge->find("until the first loss"), std::string::npos);
  EXPECT_FALSE(payload_warning(4088 - 12, 4096, false)) << "our writer has no wedge";
  EXPECT_NE(payload_warning(4088 - 12 + 1, 4096, false)->find("never fit"), std::string::npos);
  EXPECT_TRUE(payload_warning(65517, 1 << 20, false));
}

}  // namespace
}  // namespace v0
}  // namespace dwell
