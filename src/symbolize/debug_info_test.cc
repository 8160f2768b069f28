// Which file's debug information belongs to a recorded module, and which does not.
#include "symbolize/debug_info.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <ctime>

#include "symbolize/workshop.h"

namespace dwell::symbolize {
namespace {

constexpr const char* kId = "abcdef01";

class DebugInfoTest : public testing::Test {
 protected:
  void SetUp() override {
    shop_.write("p.c", speaking_program());
    ASSERT_TRUE(
        shop_.run("gcc -g -O1 -Wl,--build-id=0xabcdef01 -o full p.c && "
                  "objcopy --only-keep-debug full full.debug && strip -s -o p full"))
        << shop_.read("log");
  }
  // The path of what was found, without its folder; or why nothing was.
  std::string find(const std::string& name, const std::string& build_id = kId,
                   uint64_t recorded_unix_ns = UINT64_MAX) const {
    const auto found =
        find_debug_info({shop_.path(name), build_id, recorded_unix_ns}, shop_.path("debug"));
    if (!found) return found.error().message;
    return found->path.substr(shop_.directory().size() + 1);
  }
  void install_by_id() {
    ASSERT_TRUE(
        shop_.run("mkdir -p debug/.build-id/ab && "
                  "cp full.debug debug/.build-id/ab/cdef01.debug"));
  }
  Workshop shop_;
};

TEST_F(DebugInfoTest, IsInTheFileItself) { EXPECT_EQ(find("full"), "full"); }

TEST_F(DebugInfoTest, IsInTheDebugFileOfAStrippedOne) {
  EXPECT_NE(find("p").find("it has no debug information"), std::string::npos) << find("p");
  install_by_id();
  EXPECT_EQ(find("p"), "debug/.build-id/ab/cdef01.debug");
}

TEST_F(DebugInfoTest, IsFoundByDebugLink) {
  ASSERT_TRUE(
      shop_.run("strip -s -R .note.gnu.build-id -o q full && "
                "objcopy --add-gnu-debuglink=full.debug q"));
  EXPECT_EQ(find("q", ""), "full.debug");
}

TEST_F(DebugInfoTest, IsRefusedOfAnotherBuild) {
  ASSERT_TRUE(shop_.run("gcc -g -O1 -Wl,--build-id=0x5678 -o full p.c"));
  EXPECT_EQ(find("full"), "another build of it is there now");
  install_by_id();  // the recorded build is known all the same
  EXPECT_EQ(find("full"), "debug/.build-id/ab/cdef01.debug");
  ASSERT_TRUE(shop_.run("cp full debug/.build-id/ab/cdef01.debug"));
  EXPECT_EQ(find("full"), "another build of it is there now");
}

TEST_F(DebugInfoTest, IsRefusedOfAFileWithoutABuildIdThatChangedSince) {
  ASSERT_TRUE(shop_.run("objcopy -R .note.gnu.build-id full plain"));
  const auto now = static_cast<uint64_t>(time(nullptr)) * 1'000'000'000;
  EXPECT_EQ(find("plain", "", now + 10'000'000'000), "plain");
  EXPECT_EQ(find("plain", "", now - 10'000'000'000), "it changed after the recording");
}

TEST_F(DebugInfoTest, IsNeverAFifoAndNeverNothing) {
  ASSERT_EQ(mkfifo(shop_.path("fifo").c_str(), 0600), 0);
  EXPECT_NE(find("fifo").find("not a regular file"), std::string::npos) << find("fifo");
  EXPECT_NE(find("none").find("No such file"), std::string::npos) << find("none");
  shop_.write("text", "no ELF");
  EXPECT_NE(find("text").find("not an ELF file"), std::string::npos) << find("text");
}

}  // namespace
}  // namespace dwell::symbolize
