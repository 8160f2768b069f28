#include "base/fd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace dwell {
inline namespace v0 {

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Fd::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

Result<Fd> open_for_reading(const std::string& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return errno_error(errno, "cannot open " + path);
  return fd;
}

Result<std::string> read_all(int fd, const std::string& name, size_t limit_bytes) {
  std::string content;
  constexpr size_t kChunk = 1 << 16;
  for (;;) {
    const size_t old_size = content.size();
    content.resize(old_size + kChunk);
    const ssize_t n = read(fd, content.data() + old_size, kChunk);
    if (n < 0 && errno == EINTR) {
      content.resize(old_size);
      continue;
    }
    if (n < 0) return errno_error(errno, "cannot read " + name);
    content.resize(old_size + static_cast<size_t>(n));
    if (content.size() > limit_bytes)
      return runtime_error(fmt::format("cannot read {}: larger than {} bytes", name, limit_bytes));
    if (n == 0) return content;
  }
}

Result<std::string> read_file(const std::string& path, size_t limit_bytes) {
  DWELL_ASSIGN(Fd fd, open_for_reading(path));
  return read_all(fd.get(), path, limit_bytes);
}

namespace {

Status write_all(int fd, const std::string& bytes, const std::string& name) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno_error(errno, "cannot write " + name);
    done += static_cast<size_t>(n);
  }
  return {};
}

}  // namespace

Status write_file_atomically(const std::string& path, const std::string& bytes) {
  struct stat st;
  if (stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode)) {
    Fd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
    if (!fd) return errno_error(errno, "cannot open " + path + " for writing");
    return write_all(fd.get(), bytes, path);
  }
  std::string temporary = path + ".XXXXXX";
  Fd fd(mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return errno_error(errno, "cannot create a file beside " + path);
  Status status = write_all(fd.get(), bytes, path);
  if (status && fchmod(fd.get(), 0644) != 0)
    status = errno_error(errno, "cannot set the mode of " + path);
  if (status && fsync(fd.get()) != 0) status = errno_error(errno, "cannot write " + path);
  if (status && rename(temporary.c_str(), path.c_str()) != 0)
    status = errno_error(errno, "cannot rename " + temporary + " to " + path);
  if (!status) unlink(temporary.c_str());
  return status;
}

Status check_can_write(const std::string& path) {
  struct stat st;
  if (stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode))
    return runtime_error("cannot write " + path + ": it is a folder");
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    return errno_error(errno, "cannot create files in " + folder + "; choose another -o FILE");
  return {};
}

}  // namespace v0
}  // namespace dwell
