#include "symbolize/jit_maps.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "symbolize/process_maps.h"

namespace dwell::symbolize {
namespace {

constexpr const char* kStartWithMap =
    "let the runtime write a perf map: -XX:+DumpPerfMapAtExit (Java), --perf-basic-prof (Node), "
    "-X perf (Python), DOTNET_PerfMapEnabled=1 (.NET)";

bool same_file(const FileIdentity& a, const FileIdentity& b) {
  return a.device == b.device && a.inode == b.inode;
}

// Size of the file and the bytes from `offset` on, at most a chunk.
struct Piece {
  uint64_t file_bytes = 0;
  std::string text;
};
std::optional<Piece> read_piece(FileWorker& worker, const std::shared_ptr<Fd>& fd,
                                uint64_t offset) {
  return worker.run([fd, offset] {
    constexpr size_t kChunk = size_t{1} << 20;
    Piece piece;
    struct stat st;
    if (fstat(fd->get(), &st) != 0 || st.st_size < 0) return piece;
    piece.file_bytes = static_cast<uint64_t>(st.st_size);
    if (piece.file_bytes <= offset) return piece;
    piece.text.resize(std::min<uint64_t>(kChunk, piece.file_bytes - offset));
    const ssize_t n =
        pread(fd->get(), piece.text.data(), piece.text.size(), static_cast<off_t>(offset));
    piece.text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return piece;
  });
}

}  // namespace

bool JitMaps::wants_process(ObjectId object) const {
  const auto known = followed_.find(object);
  if (known == followed_.end()) return followed_.size() < kMapsMax;
  return !known->second.fd && monotonic_now_ns() - known->second.looked_ns >= kLookPauseNs;
}

std::vector<JitMaps::Place> JitMaps::places_of(const LiveProcess& process, RootId root) const {
  const std::string inner = fmt::format("perf-{}.map", process.innermost_pid());
  const std::string outer = fmt::format("perf-{}.map", process.pid());
  std::vector<Place> places{{root, "/tmp/" + inner}, {root, "/tmp/" + outer}};
  if (!options_.perf_map_dir.empty())
    for (const RootId from : {root, Roots::kOwn})
      for (const std::string& name : {inner, outer})
        places.push_back({from, options_.perf_map_dir + "/" + name});
  places.push_back({Roots::kOwn, "/tmp/" + outer});
  return places;
}

void JitMaps::look_for_map(ObjectId object, const LiveProcess& process, RootId root) {
  Followed& followed = followed_[object];
  const auto user = process.user();
  if (!user) return;
  followed.user = *user;
  followed.places = places_of(process, root);
  followed.name = followed.places.front().path;
  open_best(object, followed);
}

void JitMaps::open_best(ObjectId object, Followed& followed) {
  followed.looked_ns = monotonic_now_ns();
  std::string refused;
  for (const Place& place : followed.places) {
    auto file =
        open_patiently(worker_, place.path,
                       [path = place.path, from = std::make_shared<Fd>(roots_.copy(place.root))] {
                         return open_in_root(from->get(), path, FinalLink::kRefuse);
                       });
    if (!file) {
      if (file.error().code != ENOENT) refused = file.error().message;
      continue;
    }
    if (file->owner != 0 && file->owner != followed.user) {
      refused = fmt::format("{} belongs to user {}, not to the process' user {}", place.path,
                            file->owner, followed.user);
      continue;
    }
    if (followed.fd && same_file(file->identity, followed.identity)) return;
    followed.fd = std::make_shared<Fd>(std::move(file->fd));
    followed.identity = file->identity;
    followed.read_bytes = 0;
    map_bytes_ -= followed.map.memory_bytes();
    followed.map = PerfMap();
    objects_.set_kind(object, ModuleKind::kJit, "[jit]");
    return;
  }
  if (!followed.fd)
    excuse(object, refused.empty() ? "no perf map " + followed.name : "perf map: " + refused);
}

bool JitMaps::may_read_more(const Followed& followed) const {
  return followed.read_bytes < kFileMax && !followed.map.full() &&
         map_bytes_ + followed.map.memory_bytes() < options_.symbol_bytes_max;
}

void JitMaps::read_on(ObjectId object, Followed& followed) {
  if (!followed.fd) return;
  map_bytes_ -= followed.map.memory_bytes();
  bool complete = false;
  while (!complete && may_read_more(followed)) {
    const auto piece = read_piece(worker_, followed.fd, followed.read_bytes);
    if (!piece) break;
    if (piece->file_bytes < followed.read_bytes) {  // written anew
      followed.map = PerfMap();
      followed.read_bytes = 0;
      continue;
    }
    followed.map.append(piece->text);
    followed.read_bytes += piece->text.size();
    complete = piece->text.empty();
  }
  map_bytes_ += followed.map.memory_bytes();
  excuse(object, complete
                     ? fmt::format("perf map {} does not name the address: its code was freed "
                                   "before it was written, or is not the runtime's",
                                   followed.name)
                     : fmt::format("perf map {} is larger than what is read of it", followed.name));
}

void JitMaps::excuse(ObjectId object, const std::string& reason) {
  objects_.set_excuse(object, {reason, kStartWithMap});
}

std::optional<PerfMap::Match> JitMaps::find(ObjectId object, uint64_t address) {
  const auto known = followed_.find(object);
  if (known == followed_.end()) return std::nullopt;
  Followed& followed = known->second;
  if (followed.read_bytes == 0 || monotonic_now_ns() - followed.looked_ns >= kLookPauseNs) {
    open_best(object, followed);
    read_on(object, followed);
  }
  return followed.map.find(address);
}

}  // namespace dwell::symbolize
