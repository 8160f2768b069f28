#include "base/fd.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace dwell {
inline namespace v0 {
namespace {

class FdTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/dwell_fd_test.XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    dir_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  std::string dir_;
};

TEST_F(FdTest, WritesAndReadsAWholeFile) {
  const std::string content(200'000, 'x');
  ASSERT_TRUE(write_file_atomically(dir_ + "/a", content));
  EXPECT_EQ(read_file(dir_ + "/a").value(), content);
}

TEST_F(FdTest, LeavesNoTemporaryFileWhenTheDiskIsFull) {
  const Status status = write_file_atomically("/dev/full", "x");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ENOSPC);
  EXPECT_NE(status.error().message.find("/dev/full"), std::string::npos);
}

TEST_F(FdTest, RefusesAFileOverTheLimit) {
  ASSERT_TRUE(write_file_atomically(dir_ + "/a", std::string(1000, 'x')));
  EXPECT_FALSE(read_file(dir_ + "/a", 999));
  EXPECT_TRUE(read_file(dir_ + "/a", 1000));
}

TEST_F(FdTest, DoesNotHangOnAFifo) {
  ASSERT_EQ(mkfifo((dir_ + "/fifo").c_str(), 0600), 0);
  const auto content = read_file(dir_ + "/fifo");
  EXPECT_TRUE(!content || content->empty());
}

TEST_F(FdTest, NamesActionObjectAndErrno) {
  const auto content = read_file(dir_ + "/none");
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().message,
            "cannot open " + dir_ + "/none: No such file or directory (ENOENT)");
}

}  // namespace
}  // namespace v0
}  // namespace dwell
