#include "symbolize/jit_maps.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "symbolize/process_maps.h"

namespace dwell::symbolize {
namespace {

constexpr const char* kStartWithMap =
    "let the runtime write a perf map: -XX:+DumpPerfMapAtExit (Java), --perf-basic-prof (Node), "
    "-X perf (Python), DOTNET_PerfMapEnabled=1 (.NET)";
constexpr size_t kChunkBytes = size_t{1} << 20;
static_assert(kChunkBytes >= JitDump::kPieceMin);

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
    Piece piece;
    struct stat st;
    if (fstat(fd->get(), &st) != 0 || st.st_size < 0) return piece;
    piece.file_bytes = static_cast<uint64_t>(st.st_size);
    if (piece.file_bytes <= offset) return piece;
    piece.text.resize(std::min<uint64_t>(kChunkBytes, piece.file_bytes - offset));
    const ssize_t n =
        pread(fd->get(), piece.text.data(), piece.text.size(), static_cast<off_t>(offset));
    piece.text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return piece;
  });
}

// "jit-NUMBER.dump": by the name of what a process maps executable, profilers find it.
bool is_dump(std::string_view path) {
  std::string_view name = without_deleted_mark(path);
  name.remove_prefix(std::min(name.size(), name.rfind('/') + 1));
  if (!name.starts_with("jit-") || !name.ends_with(".dump")) return false;
  name.remove_prefix(4);
  name.remove_suffix(5);
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

template <typename Names>
void JitMaps::Followed<Names>::follow(OpenedFile file, std::string its_path) {
  fd = std::make_shared<Fd>(std::move(file.fd));
  identity = file.identity;
  path = std::move(its_path);
  file_bytes = 0;
  names = Names();
}

bool JitMaps::wants_process(ObjectId object) const {
  const auto known = programs_.find(object);
  if (known == programs_.end()) return programs_.size() < kMapsMax;
  const Program& program = known->second;
  return !program.map.open() && !program.dump.open() &&
         monotonic_ns() - program.looked_ns >= kLookPauseNs;
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
  Program& program = programs_[object];
  const auto user = process.user();
  if (!user) return;
  program.user = *user;
  program.places = places_of(process, root);
  open_dump(object, program, process);
  open_map(object, program);
}

// A forked child has its parent's dump mapped, which tells of the code that it inherited: one of
// its own, if there is one, was mapped later and lies anywhere, so the name decides.
void JitMaps::open_dump(ObjectId object, Program& program, const LiveProcess& process) {
  std::vector<MapsLine> dumps = process.executable_maps();
  std::erase_if(dumps, [](const MapsLine& line) { return !is_dump(line.path); });
  const std::string own = fmt::format("/jit-{}.dump", process.innermost_pid());
  std::ranges::stable_partition(
      dumps, [&](const MapsLine& line) { return line.path.find(own) != std::string::npos; });
  if (dumps.size() > kDumpsTried) dumps.resize(kDumpsTried);
  for (const MapsLine& line : dumps) {
    auto file = open_patiently(worker_, line.path, [process, start = line.start, end = line.end] {
      std::string link;
      return open_mapped_file(process, start, end, &link);
    });
    if (!file) continue;
    program.dump.follow(std::move(*file), line.path);
    objects_.set_kind(object, ModuleKind::kJit, "[jit]");
    return;
  }
}

void JitMaps::open_map(ObjectId object, Program& program) {
  program.looked_ns = monotonic_ns();
  std::string refused;
  for (const Place& place : program.places) {
    auto file =
        open_patiently(worker_, place.path, [path = place.path, from = roots_.share(place.root)] {
          return open_in_root(from->get(), path, FinalLink::kRefuse);
        });
    if (!file) {
      if (file.error().code != ENOENT) refused = file.error().message;
      continue;
    }
    if (file->owner != 0 && file->owner != program.user) {
      refused = fmt::format("{} belongs to user {}, not to the process' user {}", place.path,
                            file->owner, program.user);
      continue;
    }
    if (program.map.open() && same_file(file->identity, program.map.identity)) return;
    program.map.follow(std::move(*file), place.path);
    objects_.set_kind(object, ModuleKind::kJit, "[jit]");
    return;
  }
  if (program.map.open() || program.dump.open()) return;
  objects_.set_excuse(object, {refused.empty() ? "no perf map " + program.places.front().path
                                               : "perf map: " + refused,
                               kStartWithMap});
}

template <typename Names>
void JitMaps::read_on(Followed<Names>& followed) {
  followed.whole = false;
  while (followed.open() && !followed.names.full() &&
         memory_bytes_ + followed.names.memory_bytes() < options_.symbol_bytes_max) {
    const uint64_t from = followed.names.next_offset();
    const auto piece = read_piece(worker_, followed.fd, from);
    if (!piece) return;
    const bool written_anew = piece->file_bytes < followed.file_bytes;
    followed.file_bytes = piece->file_bytes;
    if (written_anew) {
      followed.names = Names();
      continue;
    }
    followed.names.append(piece->text);
    followed.whole = followed.names.next_offset() == from;
    if (followed.whole) return;
  }
}

void JitMaps::read_all(ObjectId object, Program& program) {
  memory_bytes_ -= program.memory_bytes();
  read_on(program.dump);
  read_on(program.map);
  memory_bytes_ += program.memory_bytes();
  if (program.dump.open() || program.map.open()) excuse(object, program);
}

void JitMaps::excuse(ObjectId object, const Program& program) {
  const std::string& damage = program.dump.names.damage();
  const bool by_map = program.map.open();
  const std::string file = by_map ? "perf map " + program.map.path : "jitdump " + program.dump.path;
  const bool whole = by_map ? program.map.whole : program.dump.whole || program.dump.names.closed();
  std::string reason = file + " is larger than what is read of it";
  if (!by_map && !damage.empty()) {
    reason = file + " " + damage;
  } else if (whole) {
    reason = file +
             " does not name the address: its code was freed before it was written, or is "
             "not the runtime's";
  }
  objects_.set_excuse(object, {std::move(reason), kStartWithMap});
}

std::optional<JitMatch> JitMaps::find(ObjectId object, uint64_t address) {
  const auto known = programs_.find(object);
  if (known == programs_.end()) return std::nullopt;
  Program& program = known->second;
  const bool unread = program.dump.names.next_offset() + program.map.names.next_offset() == 0;
  if (unread || monotonic_ns() - program.looked_ns >= kLookPauseNs) {
    open_map(object, program);
    read_all(object, program);
  }
  if (const auto code = program.dump.names.find(address))
    return JitMatch{*code, Resolution::kJitDump};
  if (const auto code = program.map.names.find(address))
    return JitMatch{*code, Resolution::kPerfMap};
  return std::nullopt;
}

}  // namespace dwell::symbolize
