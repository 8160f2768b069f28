#include "symbolize/table_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "unwind/cfi_builder.h"

namespace dwell::symbolize {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A file with `functions` functions whose CFA is rsp + `offset`.
UnwindData file_with(int offset, int functions = 20, const char* build_id = "ab12") {
  unwind::CfiBuilder cfi;
  const uint32_t cie = cfi.cie();
  for (int i = 0; i < functions; ++i)
    cfi.fde(cie, 0x2000 + static_cast<uint64_t>(i) * 0x100, 32, unwind::bytes({0x0e, offset}));
  return {cfi.section(), "", "", 0, unwind::CfiBuilder::kAddress, {{0x1000, 0x100000}}, build_id};
}

class TableCacheTest : public testing::Test {
 protected:
  TableCacheTest() {
    char dir[] = "/tmp/table_cache_test.XXXXXX";
    dir_ = mkdtemp(dir);
    folder_ = dir_ + "/cache/dwell";
    limits_.rows_min = 1;
  }
  ~TableCacheTest() override { fs::remove_all(dir_); }

  std::unique_ptr<TableCache> open() {
    auto cache = TableCache::open(folder_, limits_);
    EXPECT_TRUE(cache) << cache.error().message;
    return cache ? std::move(*cache) : nullptr;
  }
  void put(TableCache& cache, const UnwindData& data) {
    cache.store(data, unwind::compile(data.source()));
  }
  std::vector<fs::path> tables() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(folder_))
      if (entry.path().extension() == ".unwind") found.push_back(entry.path());
    return found;
  }
  // Makes the table look as if it was last used so long ago.
  static void age(const fs::path& path, int hours) {
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }

  std::string dir_, folder_;
  TableCacheLimits limits_;
};

TEST_F(TableCacheTest, FindsInTheNextRecordingWhatThisOneCompiled) {
  const UnwindData data = file_with(24);
  {
    const auto cache = open();
    EXPECT_FALSE(cache->find(data));
    put(*cache, data);
  }
  const auto cache = open();
  const auto table = cache->find(data);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->rows, unwind::compile(data.source()).rows);
  EXPECT_EQ(table->find(0x2010)->cfa_offset, 24);
  EXPECT_EQ(cache->hits(), 1u);
}

// A container's file that claims the build id of the host's libc must not stand in for it.
TEST_F(TableCacheTest, DoesNotBelieveABuildId) {
  const auto cache = open();
  put(*cache, file_with(24));
  EXPECT_FALSE(cache->find(file_with(32)));
  UnwindData moved = file_with(24);
  moved.eh_frame_address += 16;
  EXPECT_FALSE(cache->find(moved));
  UnwindData shorter = file_with(24);
  shorter.code[0].end -= 1;
  EXPECT_FALSE(cache->find(shorter));
  UnwindData other_section = file_with(24);
  std::swap(other_section.eh_frame, other_section.debug_frame);
  EXPECT_FALSE(cache->find(other_section));
  UnwindData of_go = file_with(24);
  of_go.go_functions = "other functions";
  EXPECT_FALSE(cache->find(of_go));
  UnwindData of_go_elsewhere = file_with(24);
  of_go_elsewhere.go_text_start += 16;
  EXPECT_FALSE(cache->find(of_go_elsewhere));
  EXPECT_TRUE(cache->find(file_with(24)));
}

TEST_F(TableCacheTest, KeepsFilesWithoutABuildIdToo) {
  const auto cache = open();
  put(*cache, file_with(24, 20, ""));
  EXPECT_TRUE(cache->find(file_with(24, 20, "")));
}

TEST_F(TableCacheTest, RemovesWhatIsDamaged) {
  const UnwindData data = file_with(24);
  for (const char* damage : {"truncated", "flipped", "empty", "longer"}) {
    const auto cache = open();
    put(*cache, data);
    const fs::path path = tables().at(0);
    std::string bytes = read_file(path).value();
    if (std::string_view(damage) == "truncated") bytes.resize(bytes.size() / 2);
    if (std::string_view(damage) == "flipped") bytes[bytes.size() / 2] ^= 1;
    if (std::string_view(damage) == "empty") bytes.clear();
    if (std::string_view(damage) == "longer") bytes += "x";
    std::ofstream(path, std::ios::trunc | std::ios::binary) << bytes;
    EXPECT_FALSE(cache->find(data)) << damage;
    EXPECT_EQ(cache->refused(), 1u) << damage;
    EXPECT_TRUE(tables().empty()) << damage;
  }
}

TEST_F(TableCacheTest, FollowsNoLinkAndReadsNothingOfOthers) {
  const UnwindData data = file_with(24);
  const auto cache = open();
  put(*cache, data);
  const fs::path path = tables().at(0), aside = dir_ + "/aside";
  chmod(path.c_str(), 0640);
  EXPECT_FALSE(cache->find(data)) << "its group may read it";
  chmod(path.c_str(), 0600);
  ASSERT_TRUE(cache->find(data));
  fs::rename(path, aside);
  fs::create_symlink(aside, path);
  EXPECT_FALSE(cache->find(data)) << "a link";
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(cache->find(data)) << "a FIFO, which must not block either";
  if (geteuid() != 0) GTEST_SKIP() << "SKIP: only root can give a file away";
  fs::remove(path);
  fs::rename(aside, path);
  ASSERT_EQ(chown(path.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(cache->find(data)) << "another user's";
}

TEST_F(TableCacheTest, UsesOnlyAFolderThatIsItsOwn) {
  fs::create_directories(folder_);
  chmod(folder_.c_str(), 0755);
  const auto readable = TableCache::open(folder_, limits_);
  ASSERT_FALSE(readable);
  EXPECT_THAT(readable.error().message, HasSubstr("may look into it"));
  fs::remove(folder_);
  fs::create_directories(dir_ + "/elsewhere");
  fs::create_directory_symlink(dir_ + "/elsewhere", folder_);
  EXPECT_FALSE(TableCache::open(folder_, limits_)) << "a link to somewhere else";
  fs::remove(folder_);
  std::ofstream(folder_) << "a file";
  EXPECT_FALSE(TableCache::open(folder_, limits_));
  fs::remove(folder_);
  EXPECT_TRUE(open());
  if (geteuid() != 0) GTEST_SKIP() << "SKIP: only root can give a folder away";
  ASSERT_EQ(chown(folder_.c_str(), 65534, 65534), 0);
  EXPECT_FALSE(TableCache::open(folder_, limits_)) << "another user's";
}

TEST_F(TableCacheTest, StaysWithinItsBytesAndDropsWhatWasUsedLongestAgo) {
  const UnwindData first = file_with(24), second = file_with(32), third = file_with(40);
  const auto roomy = open();
  put(*roomy, first);
  const fs::path oldest = tables().at(0);
  const uint64_t one = fs::file_size(oldest);
  put(*roomy, second);
  for (const fs::path& path : tables()) age(path, path == oldest ? 2 : 1);
  ASSERT_TRUE(roomy->find(first)) << "and with that it is the one that was used last";
  limits_.bytes_max = 2 * one;
  const auto tight = open();
  EXPECT_EQ(tables().size(), 2u);
  put(*tight, third);
  EXPECT_EQ(tables().size(), 2u);
  EXPECT_TRUE(tight->find(third));
  EXPECT_FALSE(tight->find(second));
  limits_.files_max = 1;
  open();
  EXPECT_EQ(tables().size(), 1u);
}

TEST_F(TableCacheTest, ClearsAwayWhatAKilledRecorderLeft) {
  open();
  for (int i = 0; i < 3; ++i)
    std::ofstream(folder_ + "/new-1-" + std::to_string(i)) << std::string(1000, 'x');
  limits_.bytes_max = 1500;
  open();
  size_t left = 0;
  for (const auto& entry : fs::directory_iterator(folder_))
    left += entry.path().filename().string().starts_with("new-");
  EXPECT_EQ(left, 1u);
}

TEST_F(TableCacheTest, StoresNoTableThatIsCompiledInNoTime) {
  limits_.rows_min = 1000;
  const auto cache = open();
  put(*cache, file_with(24));
  EXPECT_EQ(cache->stored(), 0u);
  limits_.rows_min = 1;
  limits_.file_bytes_max = 100;
  const auto narrow = open();
  put(*narrow, file_with(24));
  EXPECT_EQ(narrow->stored(), 0u) << "nor one that is too large";
}

TEST_F(TableCacheTest, BeginsAnewWhenItsKeyIsGone) {
  const UnwindData data = file_with(24);
  put(*open(), data);
  std::ofstream(folder_ + "/key", std::ios::trunc) << "short";
  const auto cache = open();
  EXPECT_FALSE(cache->find(data)) << "nobody can foretell the names under the new key";
  put(*cache, data);
  EXPECT_TRUE(cache->find(data));
}

TEST_F(TableCacheTest, GivesTheSameTableAsTheCompilerForLibc) {
  const Fd file(::open("/lib/x86_64-linux-gnu/libc.so.6", O_RDONLY | O_CLOEXEC));
  if (!file) GTEST_SKIP() << "SKIP: no libc.so.6 where Debian has it";
  limits_.rows_min = 4096;
  const auto cache = open();
  const auto bytes = FileBytes::of_file(file.get(), "libc.so.6");
  ASSERT_TRUE(bytes);
  const auto compiled = compile_unwind_table(*bytes, cache.get());
  const auto cached = compile_unwind_table(*bytes, cache.get());
  ASSERT_TRUE(compiled && cached);
  EXPECT_EQ(cache->hits(), 1u);
  EXPECT_EQ(cached->rows, compiled->rows);
  EXPECT_GT(cached->rows.size(), 10'000u);
}

TEST(DefaultCacheFolder, FollowsTheXdgVariables) {
  const char* before = getenv("XDG_CACHE_HOME");
  const std::string kept = before == nullptr ? "" : before;
  setenv("XDG_CACHE_HOME", "/somewhere", 1);
  EXPECT_EQ(default_cache_folder(), "/somewhere/dwell");
  setenv("XDG_CACHE_HOME", "not/absolute", 1);
  const std::string fallback = default_cache_folder();
  EXPECT_TRUE(fallback == "/var/cache/dwell" || fallback.ends_with("/.cache/dwell")) << fallback;
  if (before == nullptr)
    unsetenv("XDG_CACHE_HOME");
  else
    setenv("XDG_CACHE_HOME", kept.c_str(), 1);
}

}  // namespace
}  // namespace dwell::symbolize
