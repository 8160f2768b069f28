#include "symbolize/work_apart.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "base/fd.h"
#include "base/sanitizers.h"

namespace dwell::symbolize {
namespace {

using Clock = std::chrono::steady_clock;

// Sanitizers reserve more addresses than any limit.
constexpr bool kLimitsAddresses = !DWELL_ASAN && !DWELL_TSAN;

// All that the child writes until it ends; nothing if that is too much or takes too long.
std::optional<std::string> read_answer(int fd, const ApartLimits& limits) {
  const auto deadline = Clock::now() + limits.patience;
  std::string all;
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd wait{fd, POLLIN, 0};
    const int ready = left.count() <= 0 ? 0 : poll(&wait, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    char piece[1 << 16];
    const ssize_t n = read(fd, piece, sizeof(piece));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return all;
    all.append(piece, static_cast<size_t>(n));
    if (all.size() > limits.answer_bytes) return std::nullopt;
  }
}

// How the child ended, waited for; it is killed first if it goes on.
int end_of(pid_t child, bool kill_it) {
  if (kill_it) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// Best effort: a name space may have no such user.
void become_nobody() {
  constexpr uid_t kNobody = 65534;
  if (geteuid() != 0) return;
  const bool done = setgroups(0, nullptr) == 0 && setresgid(kNobody, kNobody, kNobody) == 0 &&
                    setresuid(kNobody, kNobody, kNobody) == 0;
  static_cast<void>(done);
}

[[noreturn]] void be_the_child(const ApartLimits& limits, const std::function<void(int)>& work,
                               int fd) {
  if (limits.as_nobody) become_nobody();
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // which a change of user takes back
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  set_hard_limit(RLIMIT_CORE, 0);
  set_hard_limit(RLIMIT_CPU, static_cast<uint64_t>(limits.patience.count()));
  if (kLimitsAddresses) set_hard_limit(RLIMIT_AS, limits.memory_bytes);
  work(fd);
  _exit(0);
}

}  // namespace

void set_hard_limit(int what, uint64_t value) {
  const rlimit limit{value, value};
  setrlimit(static_cast<__rlimit_resource>(what), &limit);
}

void write_or_end(int fd, const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t n = write(fd, from, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) _exit(1);
    from += n;
    bytes -= static_cast<size_t>(n);
  }
}

Result<ApartAnswer> work_apart(const ApartLimits& limits, const std::function<void(int)>& work) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return errno_error(errno, "cannot make a pipe");
  Fd read_end(ends[0]), write_end(ends[1]);
  const pid_t child = fork();
  if (child < 0) return errno_error(errno, "cannot start a process");
  if (child == 0) be_the_child(limits, work, write_end.get());
  write_end.reset();
  auto bytes = read_answer(read_end.get(), limits);
  const int status = end_of(child, !bytes);
  ApartAnswer answer;
  if (!bytes) {
    answer.end = ApartAnswer::End::kTooMuch;
  } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    answer.death = WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "out of memory";
  } else {
    answer = {ApartAnswer::End::kWhole, std::move(*bytes), ""};
  }
  return answer;
}

}  // namespace dwell::symbolize
