#include "symbolize/file_worker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

namespace dwell::symbolize {
namespace {

using std::chrono::milliseconds;

TEST(FileWorkerTest, GivesResultsInOrder) {
  FileWorker worker;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(worker.run([i] { return i * 2; }), i * 2);
  EXPECT_EQ(worker.run([] { return std::string("x"); }), "x");
  EXPECT_EQ(worker.stuck(), 0);
}

TEST(FileWorkerTest, LeavesATaskBehindThatHangsAndGoesOn) {
  auto release = std::make_shared<std::atomic<bool>>(false);
  FileWorker worker(milliseconds(50));
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(worker.run([release] {
      while (!release->load()) std::this_thread::sleep_for(milliseconds(1));
      return 1;
    }),
              std::nullopt);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  EXPECT_EQ(worker.stuck(), 3);
  release->store(true);
  EXPECT_EQ(worker.run([] { return 7; }), 7);
}

}  // namespace
}  // namespace dwell::symbolize
