#include "symbolize/mapping_records.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "ring/fake_ring.h"

namespace dwell::symbolize {
namespace {

constexpr uint64_t kTime = 123'456'789;

class Body {
 public:
  template <typename T>
  Body& put(T value) {
    append(bytes_, value);
    return *this;
  }
  Body& text(const std::string& text) {
    for (const char c : text) append(bytes_, c);
    do append(bytes_, '\0');
    while (bytes_.size() % 8 != 0);
    return *this;
  }
  std::optional<MappingEvent> decode(uint32_t type, uint16_t misc = 0) {
    append(bytes_, kTime);
    return decode_mapping_record({type, misc, static_cast<uint16_t>(bytes_.size() + 8), bytes_});
  }

 private:
  Bytes bytes_;
};

Body fork_body(uint32_t pid, uint32_t parent) {
  return Body().put(pid).put(parent).put(pid).put(parent).put(uint64_t{1});
}

TEST(MappingRecord, TellsForksOfProcessesOnly) {
  const auto event = fork_body(20, 10).decode(PERF_RECORD_FORK);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, MappingEvent::Kind::kFork);
  EXPECT_EQ(event->pid, 20u);
  EXPECT_EQ(event->parent_pid, 10u);
  EXPECT_EQ(event->time_ns, kTime);
  EXPECT_FALSE(fork_body(10, 10).decode(PERF_RECORD_FORK));
  EXPECT_FALSE(fork_body(0, 10).decode(PERF_RECORD_FORK));
  EXPECT_FALSE(fork_body(20, UINT32_MAX).decode(PERF_RECORD_FORK));
}

TEST(MappingRecord, TellsExecsFromRenamings) {
  const auto comm = [] { return Body().put(uint32_t{20}).put(uint32_t{20}).text("cat"); };
  const auto event = comm().decode(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, MappingEvent::Kind::kExec);
  EXPECT_FALSE(comm().decode(PERF_RECORD_COMM));
}

Body map_head(uint64_t start, uint64_t bytes) {
  return Body().put(uint32_t{20}).put(uint32_t{21}).put(start).put(bytes).put(uint64_t{0x2000});
}

TEST(MappingRecord, TellsMappingsByInodeOrByBuildId) {
  const auto by_inode = map_head(0x1000, 0x3000)
                            .put(uint32_t{8})
                            .put(uint32_t{1})
                            .put(uint64_t{77})
                            .put(uint64_t{5})
                            .put(uint32_t{PROT_EXEC})
                            .put(uint32_t{0})
                            .text("/a b")
                            .decode(PERF_RECORD_MMAP2);
  ASSERT_TRUE(by_inode);
  EXPECT_EQ(by_inode->mapping.end, 0x4000u);
  EXPECT_EQ(by_inode->mapping.page_offset, 0x2000u);
  EXPECT_EQ(by_inode->backing.path, "/a b");
  EXPECT_EQ(by_inode->backing.device, makedev(8, 1));
  EXPECT_EQ(by_inode->backing.inode, 77u);
  EXPECT_EQ(by_inode->mapping.from_ns, kTime);

  Body id = map_head(0x1000, 0x3000);
  id.put(uint8_t{3}).put(uint8_t{0}).put(uint16_t{0});
  for (uint8_t i = 0; i < 20; ++i) id.put(static_cast<uint8_t>(0xa0 + i));
  const auto by_id = id.put(uint32_t{PROT_EXEC})
                         .put(uint32_t{0})
                         .text("/a")
                         .decode(PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID);
  ASSERT_TRUE(by_id);
  EXPECT_EQ(by_id->backing.build_id, "a0a1a2");
  EXPECT_EQ(by_id->backing.inode, 0u);
}

TEST(MappingRecord, RefusesMappingsThatCannotBe) {
  const auto decode = [](uint64_t start, uint64_t bytes, uint32_t protection) {
    return map_head(start, bytes)
        .put(uint64_t{0})
        .put(uint64_t{0})
        .put(uint64_t{0})
        .put(protection)
        .put(uint32_t{0})
        .text("/a")
        .decode(PERF_RECORD_MMAP2);
  };
  EXPECT_TRUE(decode(0x1000, 0x1000, PROT_EXEC));
  EXPECT_FALSE(decode(0x1000, 0, PROT_EXEC));
  EXPECT_FALSE(decode(UINT64_MAX - 10, 0x1000, PROT_EXEC));
  EXPECT_FALSE(decode(0x1000, 0x1000, PROT_READ));
}

TEST(MappingRecord, TellsBpfProgramsThatAreLoaded) {
  const auto symbol = [](uint16_t type, uint16_t flags) {
    return Body()
        .put(uint64_t{0xffffffffc0000000})
        .put(uint32_t{64})
        .put(type)
        .put(flags)
        .text("bpf_prog_x")
        .decode(PERF_RECORD_KSYMBOL);
  };
  const auto loaded = symbol(PERF_RECORD_KSYMBOL_TYPE_BPF, 0);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->kind, MappingEvent::Kind::kProgramLoaded);
  EXPECT_EQ(loaded->name, "bpf_prog_x");
  EXPECT_EQ(loaded->bytes, 64u);
  EXPECT_FALSE(symbol(PERF_RECORD_KSYMBOL_TYPE_BPF, PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER));
  EXPECT_FALSE(symbol(77, 0));
}

TEST(MappingRecord, OfAnyLengthIsHarmless) {
  for (uint32_t type = 0; type < 24; ++type)
    for (size_t size = 0; size < 128; size += 8)
      decode_mapping_record({type, 0xffff, static_cast<uint16_t>(size + 8),
                             std::span<const std::byte>(pattern_bytes(size))});
}

}  // namespace
}  // namespace dwell::symbolize
