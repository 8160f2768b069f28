// Opens files that other processes have mapped: the mapped file itself, never its namesake.
//
// Only regular files, never blocking: what the path names is looked at through O_PATH before it is
// opened for reading, because opening a FIFO waits and opening a device acts. Paths of other
// processes are resolved inside their root, so that a link cannot lead out of it.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "symbolize/elf_file.h"
#include "symbolize/file_worker.h"
#include "symbolize/live_process.h"

namespace dwell::symbolize {

struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t modified_ns = 0;
  uint64_t bytes = 0;

  auto operator<=>(const FileIdentity&) const = default;
};

// What the head of the file says, read while opening it.
struct ElfSummary {
  std::vector<LoadSegment> segments;
  std::string build_id;  // "" if none
  std::string failure;   // why it is no ELF file, "" if it is one
};

struct OpenedFile {
  Fd fd;
  FileIdentity identity;
  ElfSummary elf;
  uint32_t owner = 0;         // uid
  bool unsure_inode = false;  // maps may print another inode than stat does: overlayfs, btrfs
  int64_t born_unix_ns = 0;   // birth of the inode or, where unknown, its last change
  bool deleted = false;       // no name leads to it any more
};

// The file of the mapping [start, end), through /proc/PID/map_files: deleted files and files of
// other mount namespaces included. `link` receives the path that the kernel prints for it.
Result<OpenedFile> open_mapped_file(const LiveProcess& process, uint64_t start, uint64_t end,
                                    std::string* link);
// The program of the process, even if it is deleted.
Result<OpenedFile> open_executable(const LiveProcess& process);
// `path` inside the root that `root_fd` (O_PATH) refers to.
enum class FinalLink { kFollow, kRefuse };
Result<OpenedFile> open_in_root(int root_fd, const std::string& path,
                                FinalLink final_link = FinalLink::kFollow);

// The result of opening a file on a worker's thread; an error if that did not answer.
template <typename Open>
Result<OpenedFile> open_patiently(FileWorker& worker, const std::string& name, Open open) {
  auto opened = worker.run(std::move(open));
  if (opened) return std::move(*opened);
  return runtime_error("cannot open " + name +
                       ": no answer in time; a dead network or FUSE mount?");
}

using RootId = uint32_t;

// Root directories of processes, one file descriptor per distinct root, kept after the process'
// exit so that its files are still found. Root 0 is our own.
class Roots {
 public:
  static constexpr size_t kRootsMax = 64;

  Roots();
  // Our own root if the process' root cannot be opened or there are too many.
  RootId of(const LiveProcess& process);
  int fd(RootId root) const { return roots_[root]->get(); }
  // For tasks of other threads, which may go on after us.
  std::shared_ptr<const Fd> share(RootId root) const { return roots_[root]; }
  static constexpr RootId kOwn = 0;

 private:
  struct Key {
    uint64_t namespace_inode, device, inode;
    auto operator<=>(const Key&) const = default;
  };
  static Key key_of(const std::string& directory);
  std::vector<std::shared_ptr<const Fd>> roots_;
  std::map<Key, RootId> ids_;
};

}  // namespace dwell::symbolize
