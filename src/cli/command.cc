#include "cli/command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.h"

namespace dwell::cli {
namespace {

[[noreturn]] void run_child(int go, int failed, char* const* arguments) {
  char byte;
  for (const int own : {SIGINT, SIGTERM, SIGPIPE})  // what watch_stop_signals has changed
    signal(own, SIG_DFL);
  if (read(go, &byte, 1) != 1) _exit(125);  // the recorder is gone
  execvp(arguments[0], arguments);
  const int code = errno;
  if (write(failed, &code, sizeof code) < 0) _exit(125);
  _exit(code == ENOENT ? 127 : 126);
}

}  // namespace

Result<Command> Command::start(const std::vector<std::string>& arguments) {
  int go[2], failed[2];
  if (pipe2(go, O_CLOEXEC) != 0) return errno_error(errno, "cannot create a pipe");
  Fd go_read(go[0]), go_write(go[1]);
  if (pipe2(failed, O_CLOEXEC) != 0) return errno_error(errno, "cannot create a pipe");
  Fd failed_read(failed[0]), failed_write(failed[1]);
  std::vector<char*> raw;
  for (const std::string& argument : arguments) raw.push_back(const_cast<char*>(argument.c_str()));
  raw.push_back(nullptr);
  const pid_t pid = fork();
  if (pid < 0) return errno_error(errno, "cannot start a process");
  if (pid == 0) {
    go_write.reset();  // or its own copy would keep it waiting when the recorder dies
    run_child(go_read.get(), failed_write.get(), raw.data());
  }
  Command command;
  command.pid_ = pid;
  command.name_ = arguments[0];
  command.go_ = std::move(go_write);
  command.failed_ = std::move(failed_read);
  command.exit_ = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!command.exit_) return errno_error(errno, "cannot watch the command");
  return command;
}

Command::~Command() {
  if (pid_ < 0 || !go_ || status_ >= 0) return;
  go_.reset();  // never released: let it go
  waitpid(pid_, nullptr, 0);
}

Status Command::release() {
  if (write(go_.get(), "g", 1) != 1) return errno_error(errno, "cannot start " + printable(name_));
  go_.reset();
  int code = 0;
  if (read(failed_.get(), &code, sizeof code) != sizeof code) return {};
  int status;
  if (waitpid(pid_, &status, 0) == pid_) status_ = WEXITSTATUS(status);
  auto error = errno_error(code, "cannot execute " + printable(name_));
  error.error().kind = Error::Kind::kUsage;
  return error;
}

int Command::try_wait() {
  int status;
  if (status_ >= 0 || waitpid(pid_, &status, WNOHANG) != pid_) return status_;
  status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return status_;
}

void Command::forward(int signal_number) {
  if (status_ < 0) syscall(SYS_pidfd_send_signal, exit_.get(), signal_number, nullptr, 0);
}

}  // namespace dwell::cli
