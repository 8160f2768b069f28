#include "symbolize/mappings.h"

#include <gtest/gtest.h>

namespace dwell::symbolize {
namespace {

Mapping file(const std::string& path, uint64_t start, uint64_t end, uint64_t from_ns,
             uint64_t page_offset = 0, uint64_t inode = 1) {
  Mapping mapping;
  mapping.start = start;
  mapping.end = end;
  mapping.page_offset = page_offset;
  mapping.from_ns = from_ns;
  Backing backing;
  backing.path = path;
  backing.inode = path.empty() ? 0 : inode;
  mapping.backing = std::make_shared<const Backing>(backing);
  return mapping;
}

std::string path_at(Mappings& mappings, uint64_t address, uint64_t time_ns) {
  const Mapping* mapping = mappings.find(address, time_ns);
  return mapping == nullptr ? "none" : mapping->backing->path;
}

TEST(MappingsTest, TellTwoLibrariesAtOneAddressApartByTime) {
  Mappings mappings;
  mappings.add(file("/one", 0x1000, 0x3000, 10));
  mappings.add(file("/two", 0x1000, 0x2000, 20));
  EXPECT_EQ(path_at(mappings, 0x1800, 15), "/one");
  EXPECT_EQ(path_at(mappings, 0x1800, 20), "/two");
  EXPECT_EQ(path_at(mappings, 0x2800, 30), "/one");  // the rest of it is still there
  EXPECT_EQ(path_at(mappings, 0x1800, 5), "/one");   // before both: the nearest
  EXPECT_EQ(path_at(mappings, 0x3000, 15), "none");
}

TEST(MappingsTest, KeepTheFileOffsetOfThePiecesThatRemain) {
  Mappings mappings;
  mappings.add(file("/a", 0x1000, 0x9000, 10, 0x4000));
  mappings.add(file("/b", 0x3000, 0x5000, 20));
  EXPECT_EQ(mappings.find(0x1000, 30)->page_offset, 0x4000u);
  const Mapping* right = mappings.find(0x6000, 30);
  ASSERT_NE(right, nullptr);
  EXPECT_EQ(right->start, 0x5000u);
  EXPECT_EQ(right->page_offset, 0x8000u);
  const Mapping* covered = mappings.find(0x4000, 15);
  EXPECT_EQ(covered->backing->path, "/a");
  EXPECT_EQ(covered->page_offset + (0x4000 - covered->start), 0x7000u);
}

TEST(MappingsTest, SeeOneMappingInSeveralSightingsOfIt) {
  Mappings mappings;
  mappings.add(file("/a", 0x1000, 0x3000, 10));
  mappings.find(0x1000, 10)->object = 7;
  mappings.add(file("/a", 0x2000, 0x3000, 20, 0x1000));
  EXPECT_EQ(mappings.live().size(), 1u);
  EXPECT_EQ(mappings.find(0x2800, 12)->object, 7u);
  mappings.add(file("/a", 0x2000, 0x3000, 30, 0x1000, 2));  // another file of the same name
  EXPECT_EQ(mappings.find(0x2800, 35)->object, kUnidentified);
  EXPECT_EQ(mappings.find(0x2800, 25)->object, 7u);
}

TEST(MappingsTest, DoNotGrowWhileAJitChangesProtections) {
  Mappings mappings;
  for (uint64_t i = 0; i < 100'000; ++i) {
    const uint64_t start = 0x100000 + i % 64 * 0x1000;
    mappings.add(file("", start, start + 0x2000, i));
  }
  EXPECT_LE(mappings.live().size(), 2u);
}

TEST(MappingsTest, BelieveAReadingOfAllOfThem) {
  Mappings mappings;
  mappings.add(file("/gone", 0x1000, 0x2000, 10));
  mappings.add(file("/stays", 0x3000, 0x4000, 10));
  mappings.find(0x3000, 10)->object = 3;
  mappings.replace_all({file("/stays", 0x3000, 0x4000, 15), file("/new", 0x1000, 0x2000, 15)}, 20);
  EXPECT_EQ(path_at(mappings, 0x1000, 12), "/gone");
  EXPECT_EQ(path_at(mappings, 0x1000, 25), "/new");
  EXPECT_EQ(mappings.find(0x3000, 11)->object, 3u);
}

TEST(MappingsTest, DoNotLetAReadingRewriteThePast) {
  Mappings mappings;
  mappings.add(file("/one", 0x1000, 0x2000, 10));
  mappings.add(file("/two", 0x1000, 0x2000, 20));
  mappings.replace_all({file("/two", 0x1000, 0x2000, 0)}, 30);  // begun at an unknown time
  EXPECT_EQ(path_at(mappings, 0x1800, 15), "/one");
  EXPECT_EQ(path_at(mappings, 0x1800, 25), "/two");
  mappings.replace_all({file("/three", 0x1000, 0x2000, 0)}, 40);
  EXPECT_EQ(path_at(mappings, 0x1800, 15), "/one");
}

TEST(MappingsTest, ForgetTheOldestPastBeyondTheirBound) {
  Mappings mappings;
  for (uint64_t i = 1; i < 3 * Mappings::kPastMax; ++i)
    mappings.add(file("/lib" + std::to_string(i), 0x1000, 0x2000, i * 10));
  EXPECT_EQ(path_at(mappings, 0x1000, 3 * Mappings::kPastMax * 10 - 15),
            "/lib" + std::to_string(3 * Mappings::kPastMax - 2));
  EXPECT_EQ(mappings.live().size(), 1u);
}

TEST(BackingsTest, HoldOneCopyOfEachAndForgetWhatNobodyMaps) {
  Backings backings;
  Backing libc;
  libc.path = "/libc.so.6";
  libc.inode = 7;
  const auto one = backings.intern(libc);
  EXPECT_EQ(backings.intern(libc), one);
  libc.generation = 1;
  EXPECT_NE(backings.intern(libc), one);
  for (uint64_t i = 0; i < 100'000; ++i) {
    libc.inode = 1000 + i;
    backings.intern(libc);
  }
  EXPECT_LT(backings.size(), 10'000u);
  libc.generation = 0;
  libc.inode = 7;
  EXPECT_EQ(backings.intern(libc), one);
}

}  // namespace
}  // namespace dwell::symbolize
