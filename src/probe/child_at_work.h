// A process with one thread for the tests against the real kernel: it does its work when it is told
// to, and until then and afterwards it is blocked in a read.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <functional>

#include "base/fd.h"

namespace dwell::probe {

inline void nap(long ns) {
  const timespec length = {ns / 1'000'000'000, ns % 1'000'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &length, nullptr);
}

class ChildAtWork {
 public:
  explicit ChildAtWork(const std::function<void()>& work) {
    int orders[2], reports[2];
    EXPECT_EQ(pipe(orders), 0);
    EXPECT_EQ(pipe(reports), 0);
    pid_ = fork();
    if (pid_ == 0) obey(work, orders[0], reports[1]);
    close(orders[0]);
    close(reports[1]);
    orders_ = Fd(orders[1]);
    reports_ = Fd(reports[0]);
    await();
  }
  ChildAtWork(const ChildAtWork&) = delete;
  ChildAtWork& operator=(const ChildAtWork&) = delete;
  ~ChildAtWork() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    leave();
  }

  uint32_t pid() const { return static_cast<uint32_t>(pid_); }
  void start() { EXPECT_EQ(write(orders_.get(), "w", 1), 1); }
  void await() {
    char byte;
    EXPECT_EQ(read(reports_.get(), &byte, 1), 1);
  }
  void work() {
    start();
    await();
  }
  // Ends it, and returns when it is gone.
  void leave() {
    orders_.reset();
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  [[noreturn]] static void obey(const std::function<void()>& work, int orders, int reports) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int fd = 3; fd < 1024; ++fd)  // or the copies of other pipes keep other children alive
      if (fd != orders && fd != reports) close(fd);
    char byte;
    for (;;) {
      if (write(reports, "r", 1) != 1 || read(orders, &byte, 1) != 1) _exit(0);
      work();
    }
  }

  pid_t pid_ = -1;
  Fd orders_, reports_;
};

}  // namespace dwell::probe
