#include "unwind/places.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace dwell::unwind {
namespace {

constexpr uint64_t kLater = Places::kReuseAfterNs;

TEST(Places, CrossNoBoundary) {
  Places places(300, 100);
  EXPECT_EQ(places.take(60, 0)->first, 0u);
  EXPECT_EQ(places.take(60, 0)->first, 100u);
  EXPECT_EQ(places.take(40, 0)->first, 60u) << "what was left before the boundary";
  EXPECT_EQ(places.take(100, 0)->first, 200u);
  EXPECT_FALSE(places.take(101, 0));
  EXPECT_EQ(places.take(40, 0)->first, 160u);
  EXPECT_FALSE(places.take(1, 0));
}

TEST(Places, AreTakenAgainOnlyAfterAWhile) {
  Places places(10);
  const auto place = places.take(10, 0);
  ASSERT_TRUE(place);
  places.give_back(*place, 5);
  EXPECT_FALSE(places.take(1, 5 + kLater - 1));
  EXPECT_TRUE(places.take(10, 5 + kLater));
}

TEST(Places, NeverOverlapWhateverComesAndGoes) {
  std::mt19937_64 random(7);
  Places places(4096, 512);
  std::vector<Place> taken;
  std::vector<bool> used(4096);
  uint64_t now = 0;
  for (int i = 0; i < 20'000; ++i) {
    now += kLater / 4;
    if (random() % 2 == 0 && !taken.empty()) {
      std::swap(taken[random() % taken.size()], taken.back());
      for (uint32_t at = 0; at < taken.back().count; ++at) used[taken.back().first + at] = false;
      places.give_back(taken.back(), now);
      taken.pop_back();
      continue;
    }
    const auto place = places.take(static_cast<uint32_t>(1 + random() % 300), now);
    if (!place) continue;
    ASSERT_EQ(place->first / 512, (place->first + place->count - 1) / 512);
    for (uint32_t at = 0; at < place->count; ++at) {
      ASSERT_FALSE(used[place->first + at]);
      used[place->first + at] = true;
    }
    taken.push_back(*place);
  }
  for (const Place& place : taken) places.give_back(place, now);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(places.take(512, now + kLater)) << "all room is back";
}

}  // namespace
}  // namespace dwell::unwind
