// A command that is started stopped: it waits before its first instruction until the window is
// open.
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace dwell::cli {

class Command {
 public:
  // Forks; the child waits for `release`, then executes `arguments`.
  static Result<Command> start(const std::vector<std::string>& arguments);
  Command(Command&&) = default;
  Command& operator=(Command&&) = default;
  ~Command();

  uint32_t pid() const { return static_cast<uint32_t>(pid_); }
  // Lets it run. Error: it could not be executed; exit code 127 or 126 as a shell's.
  Status release();
  // Readable once it has exited.
  int exit_fd() const { return exit_.get(); }
  // Exit status as a shell shows it (128 + signal), -1 while it runs.
  int try_wait();
  void forward(int signal_number);

 private:
  Command() = default;
  pid_t pid_ = -1;
  int status_ = -1;
  Fd go_;      // a byte lets the child run
  Fd failed_;  // the errno of a failed exec; closed by a successful one
  Fd exit_;    // pidfd
  std::string name_;
};

}  // namespace dwell::cli
