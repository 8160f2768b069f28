#include "symbolize/locations.h"

#include <gtest/gtest.h>

namespace dwell::symbolize {
namespace {

TEST(Locations, AreNumberedInTheOrderOfTheirFirstAppearance) {
  Locations locations;
  std::vector<Location> all;
  for (uint32_t i = 0; i < 50'000; ++i)
    all.push_back({.object = i % 7, .address = uint64_t{i} / 7 * 4096});
  for (uint32_t i = 0; i < all.size(); ++i) {
    const auto interned = locations.intern(all[i]);
    ASSERT_TRUE(interned.is_new) << i;
    ASSERT_EQ(interned.id, i);
  }
  for (uint32_t i = 0; i < all.size(); ++i) {
    const auto interned = locations.intern(all[i]);
    ASSERT_FALSE(interned.is_new) << i;
    ASSERT_EQ(interned.id, i);
    ASSERT_EQ(locations[i], all[i]);
  }
  EXPECT_EQ(locations.size(), all.size());
}

TEST(Locations, DifferInEachOfTheirParts) {
  const Location first{.object = 1, .address = 0x1000, .remembered = 1};
  Location others[] = {first, first, first, first, first};
  others[0].object = 2;
  others[1].return_address = true;
  others[2].kind = FrameKind::kKernel;
  others[3].address = 0x1001;
  others[4].remembered = 2;
  Locations locations;
  locations.intern(first);
  for (const Location& other : others) EXPECT_TRUE(locations.intern(other).is_new);
  EXPECT_EQ(locations.size(), 6u);
}

}  // namespace
}  // namespace dwell::symbolize
