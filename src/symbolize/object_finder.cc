#include "symbolize/object_finder.h"

#include <fmt/format.h>

#include "base/clock.h"
#include "symbolize/vdso.h"

namespace dwell::symbolize {
namespace {

constexpr uint64_t kHighest32BitEnd = uint64_t{1} << 32;
// Where x86-64 kernels put the page of uprobes: the last one of the address space
// (__create_xol_area, kernel/events/uprobes.c).
constexpr uint64_t kUprobesStart = 0x7fffffffe000;
constexpr uint64_t kUprobesEnd = 0x7ffffffff000;

// A moment of CLOCK_MONOTONIC on the wall clock, which file times are in.
int64_t unix_time_of(uint64_t then_ns) {
  const auto now = static_cast<int64_t>(clock_ns(CLOCK_REALTIME));
  return now - static_cast<int64_t>(monotonic_ns() - then_ns);
}

bool same_inode(const OpenedFile& file, const Backing& backing) {
  return backing.inode != 0 && file.identity.inode == backing.inode &&
         file.identity.device == backing.device;
}

// Is the file that a path leads to the one that was mapped? "" if so, else why not.
std::string difference(const OpenedFile& file, const Mapping& mapping, bool alive) {
  const Backing& backing = *mapping.backing;
  if (!backing.build_id.empty())
    return file.elf.build_id == backing.build_id ? "" : "another build of the file is there now";
  if (!same_inode(file, backing)) {
    const bool unsure = file.unsure_inode || backing.inode == 0;
    return alive && unsure ? "" : "another file is there now";
  }
  if (alive) return "";  // the mapping holds the inode: its number cannot have been given again
  constexpr int64_t kClockTickNs = 10'000'000;  // file times are this coarse
  const int64_t mapped_at = unix_time_of(mapping.from_ns) + kClockTickNs;
  const bool newer = file.born_unix_ns > mapped_at || file.identity.modified_ns > mapped_at;
  return newer && mapping.from_ns != 0 ? "the file was replaced or changed after it was mapped"
                                       : "";
}

// What tells a file apart for certain: a build id, or an inode with its generation. "" otherwise.
std::string certain_key(const Backing& backing) {
  if (!backing.build_id.empty()) return backing.build_id + backing.path;
  if (backing.inode == 0 || backing.generation == 0) return {};
  return fmt::format("{}:{}:{}:{}", backing.device, backing.inode, backing.generation,
                     backing.path);
}

}  // namespace

bool is_anonymous(const Backing& backing) {
  return !backing.is_file() || backing.path.starts_with("/dev/zero") ||
         backing.path.starts_with("/SYSV") || backing.path.starts_with("/anon_hugepage");
}

std::optional<ObjectId> ObjectFinder::seen(const Backing& backing) const {
  const auto known = seen_.find(certain_key(backing));
  return known == seen_.end() ? std::nullopt : std::optional(known->second);
}

void ObjectFinder::remember(const Backing& backing, ObjectId object) {
  std::string key = certain_key(backing);
  if (key.empty()) return;
  if (seen_.size() >= kSeenMax) seen_.clear();
  seen_[std::move(key)] = object;
}

ObjectId ObjectFinder::find(Image& image, Mapping& mapping, const LiveProcess* process) {
  if (mapping.object != kUnidentified) return mapping.object;
  const std::string& path = mapping.backing->path;
  if (path == "[vdso]") {
    mapping.object = find_vdso(mapping, process);
  } else if (path == "[vsyscall]") {
    mapping.object = objects_.add_named(path, ModuleKind::kVdso);
    objects_.set_excuse(mapping.object, {"the vsyscall page has no symbols", ""});
  } else if (path == "[uprobes]") {
    mapping.object = uprobes();
  } else if (path == "[heap]" || path == "[stack]") {
    mapping.object = objects_.add_named(path, ModuleKind::kAnonymous);
    objects_.set_excuse(mapping.object, {"code outside any file", ""});
  } else if (is_anonymous(*mapping.backing)) {
    return anonymous(image);  // not noted in the mapping, which forked children share
  } else {
    const ObjectId id = find_file(image, mapping, process);
    if (!is_anonymous(*mapping.backing)) mapping.object = id;
    return id;
  }
  return mapping.object;
}

ObjectId ObjectFinder::find_unmapped(uint64_t address) {
  return address >= kUprobesStart && address < kUprobesEnd ? uprobes() : 0;
}

ObjectId ObjectFinder::uprobes() {
  const ObjectId id = objects_.add_named("[uprobes]", ModuleKind::kAnonymous);
  objects_.set_excuse(id, {"a uretprobe has taken the place of the return address",
                           "remove the probe for whole stacks"});
  return id;
}

ObjectId ObjectFinder::anonymous(Image& image) {
  if (image.anonymous_object == kUnidentified)
    image.anonymous_object = objects_.add_anonymous("[anon]", ModuleKind::kAnonymous);
  return image.anonymous_object;
}

ObjectId ObjectFinder::find_vdso(const Mapping& mapping, const LiveProcess* process) {
  const bool is_32_bit = mapping.end <= kHighest32BitEnd;
  std::string image;
  if (!is_32_bit) image = own_vdso();
  if (is_32_bit && process != nullptr) image = remote_vdso(*process, mapping.start, mapping.end);
  if (!image.empty()) return objects_.add_image("[vdso]", std::move(image));
  const ObjectId id = objects_.add_named("[vdso]", ModuleKind::kVdso);
  objects_.set_excuse(id, {"the vDSO of the process could not be read", ""});
  return id;
}

ObjectId ObjectFinder::find_file(Image& image, Mapping& mapping, const LiveProcess* process) {
  for (const Mapping& other : image.mappings->live())
    if (other.object != kUnidentified && other.backing == mapping.backing) return other.object;
  if (const auto known = seen(*mapping.backing)) return *known;
  failure_.clear();
  std::optional<ObjectId> id;
  if (process != nullptr) {
    id = open_mapped(image, mapping, *process);
    if (!id) id = open_program(image, mapping, *process);
  }
  if (!id) id = open_by_path(image, mapping, process != nullptr);
  if (!id) return give_up(mapping, process != nullptr);
  // A JIT may map its code twice through a memfd: that is code without a file.
  if (objects_.info(*id).kind == ModuleKind::kMemfd && !objects_.is_elf(*id)) {
    mapping.backing = anonymous_backing();
    return anonymous(image);
  }
  remember(*mapping.backing, *id);
  return *id;
}

std::optional<ObjectId> ObjectFinder::open_mapped(const Image& image, const Mapping& mapping,
                                                  const LiveProcess& process) {
  auto link = std::make_shared<std::string>();
  auto file = open_patiently(worker_, mapping.backing->path,
                             [process, link, start = mapping.start, end = mapping.end] {
                               return open_mapped_file(process, start, end, link.get());
                             });
  if (!file) {
    failure_ = file.error().message;
    return std::nullopt;
  }
  // The range may hold another file by now.
  const std::string& path = mapping.backing->path;
  const std::string root = process.root_link();
  const bool same_path = *link == path || (root.size() > 1 && *link == root + path);
  const bool same = mapping.backing->build_id.empty()
                        ? same_path || same_inode(*file, *mapping.backing)
                        : file->elf.build_id == mapping.backing->build_id;
  if (!same) {
    failure_ = "another file is mapped there now";
    return std::nullopt;
  }
  return objects_.add_file(std::move(*file), path, image.root);
}

std::optional<ObjectId> ObjectFinder::open_program(const Image& image, const Mapping& mapping,
                                                   const LiveProcess& process) {
  if (mapping.backing->path != image.executable) return std::nullopt;
  auto file = open_patiently(worker_, mapping.backing->path,
                             [process] { return open_executable(process); });
  if (!file) {
    failure_ = file.error().message;
    return std::nullopt;
  }
  const std::string why = difference(*file, mapping, true);
  if (why.empty()) return objects_.add_file(std::move(*file), mapping.backing->path, image.root);
  failure_ = why;
  return std::nullopt;
}

std::optional<ObjectId> ObjectFinder::open_by_path(const Image& image, const Mapping& mapping,
                                                   bool alive) {
  const std::string& path = mapping.backing->path;
  const std::string unescaped = unescape_newlines(path);
  for (const RootId root : {image.root, Roots::kOwn}) {
    for (const std::string& candidate : {path, unescaped}) {
      auto file = open_patiently(worker_, candidate, [candidate, from = roots_.share(root)] {
        return open_in_root(from->get(), candidate);
      });
      if (!file) {
        if (failure_.empty()) failure_ = file.error().message;
        continue;
      }
      const std::string why = difference(*file, mapping, alive && root == image.root);
      if (why.empty()) return objects_.add_file(std::move(*file), candidate, root);
      failure_ = "cannot use " + candidate + ": " + why;
      if (unescaped == path) break;
    }
    if (image.root == Roots::kOwn) break;
  }
  return std::nullopt;
}

ObjectId ObjectFinder::give_up(const Mapping& mapping, bool alive) {
  const std::string_view bare = without_deleted_mark(mapping.backing->path);
  const bool deleted = bare.size() != mapping.backing->path.size();
  const ObjectId id =
      objects_.add_named(std::string(bare), deleted ? ModuleKind::kDeletedFile : ModuleKind::kFile,
                         mapping.backing->build_id);
  if (objects_.excuse(id).reason.empty())
    objects_.set_excuse(id, {failure_, alive ? "run dwell as root (CAP_SYS_ADMIN or "
                                               "CAP_CHECKPOINT_RESTORE)"
                                             : "the process had ended before its files were "
                                               "opened; keep the file in place"});
  return id;
}

}  // namespace dwell::symbolize
