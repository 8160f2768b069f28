#include "symbolize/file_bytes.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace dwell::symbolize {

Result<FileBytes> FileBytes::of_file(int fd, const std::string& name) {
  struct stat st;
  if (fstat(fd, &st) != 0) return errno_error(errno, "cannot stat " + name);
  if (!S_ISREG(st.st_mode)) return runtime_error("cannot read " + name + ": not a regular file");
  return FileBytes(fd, {}, static_cast<uint64_t>(st.st_size));
}

bool FileBytes::read(uint64_t offset, void* out, size_t bytes) const {
  if (offset > size_ || bytes > size_ - offset) return false;
  if (fd_ < 0) {
    std::memcpy(out, memory_.data() + offset, bytes);
    return true;
  }
  auto* to = static_cast<char*>(out);
  while (bytes > 0) {
    const ssize_t n = pread(fd_, to, bytes, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;  // 0: truncated since of_file()
    to += n;
    offset += static_cast<uint64_t>(n);
    bytes -= static_cast<size_t>(n);
  }
  return true;
}

Result<std::string> FileBytes::read_range(uint64_t offset, uint64_t bytes, uint64_t limit) const {
  if (bytes > limit)
    return runtime_error(fmt::format("{} bytes are more than the limit of {}", bytes, limit));
  if (offset > size_ || bytes > size_ - offset)
    return runtime_error(fmt::format("bytes {}+{} lie outside the file", offset, bytes));
  std::string out(bytes, '\0');
  if (!read(offset, out.data(), bytes)) return runtime_error("the file became shorter");
  return out;
}

}  // namespace dwell::symbolize
