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
  FileWorker worker(nullptr, milliseconds(50));
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

std::atomic<bool> in_a_hurry;

// A disk that is busy makes many files slow, none of them stuck.
TEST(FileWorkerTest, WhoAskedToStopWaitsForAllFilesTogetherNoLongerThanTheHurry) {
  FileWorker worker([] { return in_a_hurry.load(); }, milliseconds(5000), milliseconds(300));
  const auto slow = [] { return std::this_thread::sleep_for(milliseconds(40)), 1; };
  in_a_hurry = false;
  for (int i = 0; i < 10; ++i) EXPECT_EQ(worker.run(slow), 1);
  in_a_hurry = true;
  const auto start = std::chrono::steady_clock::now();
  int done = 0;
  for (int i = 0; i < 1000; ++i) done += worker.run(slow).value_or(0);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(3));
  EXPECT_GE(done, 1);
  EXPECT_EQ(done + worker.hurried_past(), 1000);
  EXPECT_EQ(worker.stuck(), 0);
}

TEST(FileWorkerTest, AHurryThatBeginsWhileATaskRunsEndsTheWait) {
  auto release = std::make_shared<std::atomic<bool>>(false);
  in_a_hurry = false;
  FileWorker worker([] { return in_a_hurry.load(); }, milliseconds(60'000), milliseconds(0));
  EXPECT_EQ(worker.run([release] {
    in_a_hurry = true;
    while (!release->load()) std::this_thread::sleep_for(milliseconds(1));
    return 1;
  }),
            std::nullopt);
  release->store(true);
  EXPECT_EQ(worker.hurried_past(), 1);
}

}  // namespace
}  // namespace dwell::symbolize
