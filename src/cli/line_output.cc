#include "cli/line_output.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "cli/stop_signal.h"

namespace dwell::cli {
namespace {

constexpr int kLookMs = 100;  // between two looks at the stop request

}  // namespace

bool LineOutput::wait_until_writable() {
  for (int patience_ms = kLastWriteMs; patience_ms > 0;) {
    pollfd reader = {fd_, POLLOUT, 0};
    const int ready = poll(&reader, 1, kLookMs);
    if (ready > 0) return true;  // POLLERR too: the write tells what it is
    if (stop_requested()) patience_ms -= kLookMs;
  }
  return false;
}

Status LineOutput::flush() {
  size_t done = 0;
  Status result;
  while (done < buffer_.size() && !ended_) {
    if (!wait_until_writable()) {
      ended_ = true;
      break;
    }
    // So much goes into a pipe that has room without blocking, where a stop would not be seen.
    const ssize_t n =
        write(fd_, buffer_.data() + done, std::min<size_t>(buffer_.size() - done, PIPE_BUF));
    if (n >= 0) {
      done += static_cast<size_t>(n);
    } else if (errno != EINTR && errno != EAGAIN) {
      ended_ = true;
      if (errno != EPIPE) result = errno_error(errno, "cannot write to standard output");
    }
  }
  buffer_.clear();
  return result;
}

bool LineOutput::ended() {
  pollfd reader = {fd_, 0, 0};
  if (!ended_ && poll(&reader, 1, 0) == 1 && (reader.revents & POLLERR) != 0) ended_ = true;
  return ended_;
}

}  // namespace dwell::cli
