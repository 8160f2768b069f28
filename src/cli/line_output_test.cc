#include "cli/line_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "base/fd.h"

namespace dwell::cli {
namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) == 0) reading = Fd(ends[0]), writing = Fd(ends[1]);
    signal(SIGPIPE, SIG_IGN);
  }
  Fd reading, writing;
};

TEST(LineOutput, WhatIsLargerThanThePipeArrivesWhole) {
  Pipe pipe;
  LineOutput output(pipe.writing.get());
  std::string text;
  for (int i = 0; i < 30'000; ++i) text += std::to_string(i) + "\n";
  output.buffer() = text;
  std::string arrived;
  std::thread reader([&] {
    char bytes[5000];
    for (ssize_t n; (n = read(pipe.reading.get(), bytes, sizeof bytes)) > 0;)
      arrived.append(bytes, static_cast<size_t>(n));
  });
  EXPECT_TRUE(output.flush());
  pipe.writing.reset();
  reader.join();
  EXPECT_EQ(arrived, text);
}

TEST(LineOutput, AReaderThatLeftIsNoError) {
  Pipe pipe;
  LineOutput output(pipe.writing.get());
  EXPECT_FALSE(output.ended());
  pipe.reading.reset();
  EXPECT_TRUE(output.ended()) << "seen without writing";
  LineOutput unaware(pipe.writing.get());
  unaware.buffer() = "a line\n";
  EXPECT_TRUE(unaware.flush());
  EXPECT_TRUE(unaware.ended());
  EXPECT_TRUE(unaware.buffer().empty());
}

TEST(LineOutput, AFullDiskIsAnError) {
  const Fd full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  if (!full) GTEST_SKIP() << "this machine has no /dev/full";
  LineOutput output(full.get());
  output.buffer() = "a line\n";
  const Status status = output.flush();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ENOSPC);
}

}  // namespace
}  // namespace dwell::cli
