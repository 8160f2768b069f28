// Event maps between processes: two descriptors in one message of a Unix socket.
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "event_array/user_event_map.h"

namespace dwell {
inline namespace v0 {
namespace {

constexpr size_t kFds = 2;  // memory, eventfd

union Control {
  char bytes[CMSG_SPACE(kFds * sizeof(int))];
  cmsghdr align;
};

}  // namespace

Status UserEventMap::send(int socket) const {
  const int fds[kFds] = {memory_.fd(), wake_.get()};
  Control control = {};
  char mark = 'e';
  iovec io = {&mark, 1};
  msghdr message = {};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fds);
  std::memcpy(CMSG_DATA(header), fds, sizeof fds);
  if (sendmsg(socket, &message, MSG_NOSIGNAL) != 1)
    return errno_error(errno, "cannot send an event map over a socket");
  return {};
}

Result<std::unique_ptr<UserEventMap>> UserEventMap::receive(int socket) {
  Control control = {};
  char mark = 0;
  iovec io = {&mark, 1};
  msghdr message = {};
  message.msg_iov = &io;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  ssize_t n = 0;
  do n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (n < 0 && errno == EINTR);
  if (n < 0) return errno_error(errno, "cannot receive an event map from a socket");
  Fd fds[kFds];
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (header != nullptr && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      if (i < kFds)
        fds[i] = Fd(fd);
      else
        close(fd);
    }
  }
  if (!fds[0] || !fds[1]) return runtime_error("the socket brought no event map");
  return open(std::move(fds[0]), std::move(fds[1]));
}

Result<std::unique_ptr<UserEventMap>> UserEventMap::duplicate() const {
  Fd memory(dup(memory_.fd())), wake(dup(wake_.get()));
  if (!memory || !wake) return errno_error(errno, "cannot duplicate an event map");
  return open(std::move(memory), std::move(wake));
}

}  // namespace v0
}  // namespace dwell
