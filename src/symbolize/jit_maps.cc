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
    auto file = open_in_root(roots_.fd(place.root), place.path, FinalLink::kRefuse);
    if (!file) {
      if (file.error().code != ENOENT) refused = file.error().message;
      continue;
    }
    struct stat st;
    if (fstat(file->fd.get(), &st) != 0) continue;
    if (st.st_uid != 0 && st.st_uid != followed.user) {
      refused = fmt::format("{} belongs to user {}, not to the process' user {}", place.path,
                            st.st_uid, followed.user);
      continue;
    }
    if (followed.fd && same_file(file->identity, followed.identity)) return;
    followed.fd = std::move(file->fd);
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

void JitMaps::read_on(ObjectId object, Followed& followed) {
  struct stat st;
  if (!followed.fd || fstat(followed.fd.get(), &st) != 0) return;
  const auto size = static_cast<uint64_t>(std::max<off_t>(st.st_size, 0));
  map_bytes_ -= followed.map.memory_bytes();
  if (size < followed.read_bytes) {  // written anew
    followed.map = PerfMap();
    followed.read_bytes = 0;
  }
  std::string chunk(size_t{1} << 20, '\0');
  const uint64_t until = std::min(size, kFileMax);
  while (followed.read_bytes < until && !followed.map.full() &&
         map_bytes_ + followed.map.memory_bytes() < options_.symbol_bytes_max) {
    const ssize_t n =
        pread(followed.fd.get(), chunk.data(), std::min(chunk.size(), until - followed.read_bytes),
              static_cast<off_t>(followed.read_bytes));
    if (n <= 0) break;
    followed.map.append(std::string_view(chunk).substr(0, static_cast<size_t>(n)));
    followed.read_bytes += static_cast<uint64_t>(n);
  }
  map_bytes_ += followed.map.memory_bytes();
  if (followed.read_bytes < size)
    excuse(object, fmt::format("perf map {} is larger than what is read of it", followed.name));
  else
    excuse(object, fmt::format("perf map {} does not name the address: the code was freed before "
                               "it was written, or is not the runtime's",
                               followed.name));
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
