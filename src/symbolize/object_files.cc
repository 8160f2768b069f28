#include "symbolize/object_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>

namespace dwell::symbolize {
namespace {

int64_t unix_ns(const statx_timestamp& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

bool reports_other_inodes(int fd) {
  struct statfs st;
  if (fstatfs(fd, &st) != 0) return false;
  return st.f_type == OVERLAYFS_SUPER_MAGIC || st.f_type == BTRFS_SUPER_MAGIC;
}

ElfSummary summarize(int fd, const std::string& name) {
  const auto bytes = FileBytes::of_file(fd, name);
  if (!bytes) return {{}, "", bytes.error().message};
  const auto elf = ElfFile::read(*bytes);
  if (!elf) return {{}, "", elf.error().message};
  return {elf->segments(), elf->build_id(), ""};
}

// `place` is an O_PATH descriptor: nothing has been opened yet.
Result<OpenedFile> open_if_regular(const Fd& place, const std::string& name) {
  struct statx st;
  if (statx(place.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &st) != 0)
    return errno_error(errno, "cannot stat " + name);
  if (!S_ISREG(st.stx_mode)) return runtime_error("cannot open " + name + ": not a regular file");
  Fd fd(open(fmt::format("/proc/self/fd/{}", place.get()).c_str(),
             O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return errno_error(errno, "cannot open " + name);
  OpenedFile file;
  file.elf = summarize(fd.get(), name);
  file.owner = st.stx_uid;
  file.unsure_inode = reports_other_inodes(fd.get());
  file.fd = std::move(fd);
  file.identity = {makedev(st.stx_dev_major, st.stx_dev_minor), st.stx_ino, unix_ns(st.stx_mtime),
                   st.stx_size};
  file.born_unix_ns = unix_ns((st.stx_mask & STATX_BTIME) != 0 ? st.stx_btime : st.stx_ctime);
  file.deleted = st.stx_nlink == 0;
  return file;
}

Result<OpenedFile> open_link(const std::string& path) {
  const Fd place(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!place) return errno_error(errno, "cannot open " + path);
  return open_if_regular(place, path);
}

}  // namespace

Result<OpenedFile> open_mapped_file(const LiveProcess& process, uint64_t start, uint64_t end,
                                    std::string* link) {
  const std::string path = fmt::format("{}/map_files/{:x}-{:x}", process.directory(), start, end);
  *link = read_link(path);
  return open_link(path);
}

Result<OpenedFile> open_executable(const LiveProcess& process) {
  return open_link(process.directory() + "/exe");
}

Result<OpenedFile> open_in_root(int root_fd, const std::string& path, FinalLink final_link) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  // A link opened so is not a regular file, which is refused below.
  if (final_link == FinalLink::kRefuse) how.flags |= O_NOFOLLOW;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const Fd place(static_cast<int>(syscall(SYS_openat2, root_fd, path.c_str(), &how, sizeof(how))));
  if (!place) return errno_error(errno, "cannot open " + path);
  return open_if_regular(place, path);
}

Roots::Roots() {
  Fd own(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
  ids_[key_of("/proc/self")] = kOwn;
  roots_.push_back(std::make_shared<const Fd>(std::move(own)));
}

Roots::Key Roots::key_of(const std::string& directory) {
  struct stat space {
  }, root{};
  if (stat((directory + "/ns/mnt").c_str(), &space) != 0) return {};
  if (stat((directory + "/root").c_str(), &root) != 0) return {};
  return {space.st_ino, root.st_dev, root.st_ino};
}

RootId Roots::of(const LiveProcess& process) {
  const Key key = key_of(process.directory());
  if (key.inode == 0) return kOwn;
  if (const auto known = ids_.find(key); known != ids_.end()) return known->second;
  if (roots_.size() >= kRootsMax) return kOwn;
  Fd root(open((process.directory() + "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!root) return kOwn;
  roots_.push_back(std::make_shared<const Fd>(std::move(root)));
  const auto id = static_cast<RootId>(roots_.size() - 1);
  ids_[key] = id;
  return id;
}

}  // namespace dwell::symbolize
