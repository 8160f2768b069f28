#include "symbolize/line_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "base/sanitizers.h"

namespace dwell::symbolize {
namespace {

using Clock = std::chrono::steady_clock;

// Sanitizers reserve more addresses than any limit.
constexpr bool kLimitsAddresses = !DWELL_ASAN && !DWELL_TSAN;

enum Answer : char { kChains = 'c', kFailure = 'f' };

// The child's side of the pipe, in pieces of some size.
class Writer {
 public:
  explicit Writer(int fd) : fd_(fd) {}
  void number(uint32_t value) { bytes(&value, sizeof(value)); }
  void text(std::string_view text) {
    text = text.substr(0, LineLimits::kTextMax);
    number(static_cast<uint32_t>(text.size()));
    bytes(text.data(), text.size());
  }
  void bytes(const void* data, size_t size) {
    buffer_.append(static_cast<const char*>(data), size);
    if (buffer_.size() >= kPieceBytes) flush();
  }
  void flush() {
    for (std::string_view rest = buffer_; !rest.empty();) {
      const ssize_t n = write(fd_, rest.data(), rest.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) _exit(1);
      rest.remove_prefix(static_cast<size_t>(n));
    }
    buffer_.clear();
  }

 private:
  static constexpr size_t kPieceBytes = 64 << 10;
  int fd_;
  std::string buffer_;
};

void set_limit(int what, rlim_t value) {
  const rlimit limit{value, value};
  setrlimit(static_cast<__rlimit_resource>(what), &limit);
}

[[noreturn]] void answer(const DebugInfo& files, std::span<const uint64_t> addresses,
                         const LineLimits& limits, int fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  set_limit(RLIMIT_CORE, 0);
  set_limit(RLIMIT_CPU, static_cast<rlim_t>(limits.patience.count()));
  if (kLimitsAddresses) set_limit(RLIMIT_AS, limits.memory_bytes);
  set_limit(RLIMIT_NOFILE, 0);  // the data may name other files: none of them is opened
  Writer out(fd);
  auto lines = DwarfLines::open(files.file.get(), files.alternate.get());
  const char kind = lines ? kChains : kFailure;
  out.bytes(&kind, 1);
  if (!lines) out.text(lines.error().message);
  for (size_t i = 0; lines && i < addresses.size(); ++i) {
    const SourceChain chain = lines->find(addresses[i]);
    out.number(static_cast<uint32_t>(chain.size()));
    for (const SourceFrame& frame : chain) {
      out.text(frame.function);
      out.text(frame.file);
      out.number(frame.line);
    }
  }
  out.flush();
  _exit(0);
}

// The answer, checked: the child may have gone astray.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  std::optional<uint32_t> number() {
    uint32_t value;
    if (rest_.size() < sizeof(value)) return std::nullopt;
    std::memcpy(&value, rest_.data(), sizeof(value));
    rest_.remove_prefix(sizeof(value));
    return value;
  }
  std::optional<std::string> text() {
    const auto size = number();
    if (!size || *size > rest_.size()) return std::nullopt;
    std::string out(rest_.substr(0, *size));
    rest_.remove_prefix(*size);
    return out;
  }
  std::optional<SourceChain> chain() {
    const auto size = number();
    if (!size || *size > LineLimits::kFramesMax) return std::nullopt;
    SourceChain chain;
    for (uint32_t i = 0; i < *size; ++i) {
      auto function = text(), file = text();
      const auto line = number();
      if (!function || !file || !line) return std::nullopt;
      chain.push_back({std::move(*function), std::move(*file), *line});
    }
    return chain;
  }

 private:
  std::string_view rest_;
};

// All that the child writes until it ends; nothing if that is too much or takes too long.
std::optional<std::string> read_answer(int fd, const LineLimits& limits) {
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

Result<std::vector<SourceChain>> parse(std::string_view bytes, size_t addresses) {
  Reader in(bytes.substr(std::min<size_t>(1, bytes.size())));
  if (bytes.starts_with(kFailure)) return runtime_error(in.text().value_or("unreadable"));
  std::vector<SourceChain> chains;
  for (size_t i = 0; i < addresses; ++i) {
    auto chain = in.chain();
    if (!chain) return runtime_error("the debug information is damaged");
    chains.push_back(std::move(*chain));
  }
  return chains;
}

}  // namespace

Result<std::vector<SourceChain>> look_up_lines(const DebugInfo& files,
                                               std::span<const uint64_t> addresses,
                                               const LineLimits& limits) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return errno_error(errno, "cannot make a pipe");
  Fd read_end(ends[0]), write_end(ends[1]);
  const pid_t child = fork();
  if (child < 0) return errno_error(errno, "cannot start a process");
  if (child == 0) answer(files, addresses, limits, write_end.get());
  write_end.reset();
  const auto bytes = read_answer(read_end.get(), limits);
  const int status = end_of(child, !bytes);
  if (!bytes)
    return runtime_error(fmt::format("reading the debug information took more than {} s or {} MiB",
                                     limits.patience.count(), limits.answer_bytes >> 20));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    return runtime_error(
        fmt::format("the debug information could not be followed ({})",
                    WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "out of memory"));
  return parse(*bytes, addresses.size());
}

}  // namespace dwell::symbolize
