#include "symbolize/table_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <tuple>
#include <vector>

#include "unwind/table_bytes.h"

namespace dwell::symbolize {
namespace {

constexpr const char* kKeyName = "key";
constexpr std::string_view kEnding = ".unwind";
constexpr std::string_view kUnfinished = "new-";
constexpr size_t kKeyBytes = 192;
static_assert(kKeyBytes >= XXH3_SECRET_SIZE_MIN);
constexpr size_t kBuildIdShown = 40;

// Ours alone: nobody else can have put something in, or can look at the key.
bool is_private(int fd, mode_t kind) {
  struct stat st;
  return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == kind && st.st_uid == geteuid() &&
         (st.st_mode & 077) == 0;
}

Fd open_private(int folder, const char* name) {
  Fd file(openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file && !is_private(file.get(), S_IFREG)) file.reset();
  return file;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// Under another name first: the final name never holds half a file.
bool write_whole(int folder, const std::string& name, std::string_view bytes) {
  static std::atomic<uint64_t> number = 0;
  const std::string unfinished = fmt::format("{}{}-{}", kUnfinished, getpid(), ++number);
  Fd file(openat(folder, unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return false;
  const bool done = write_all(file.get(), bytes) &&
                    renameat(folder, unfinished.c_str(), folder, name.c_str()) == 0;
  if (!done) unlinkat(folder, unfinished.c_str(), 0);
  return done;
}

std::string read_key(int folder) {
  const Fd file = open_private(folder, kKeyName);
  if (!file) return "";
  auto key = read_all(file.get(), kKeyName, kKeyBytes);
  return key && key->size() == kKeyBytes ? *key : "";
}

// Two recorders that begin at once may each make one: then one of them finds nothing, this once.
Result<std::string> find_or_make_key(int folder) {
  if (std::string key = read_key(folder); !key.empty()) return key;
  std::string key(kKeyBytes, '\0');
  if (getrandom(key.data(), key.size(), 0) != static_cast<ssize_t>(key.size()))
    return errno_error(errno, "cannot get random bytes for the cache of unwind tables");
  if (!write_whole(folder, kKeyName, key))
    return errno_error(errno, "cannot write to the cache of unwind tables");
  return key;
}

void add_bytes(XXH3_state_t& state, std::string_view bytes) {
  const uint64_t length = bytes.size();
  XXH3_128bits_update(&state, &length, sizeof length);
  XXH3_128bits_update(&state, bytes.data(), bytes.size());
}

struct CachedFile {
  std::string name;
  uint64_t bytes = 0;
  timespec used = {};
};

std::vector<CachedFile> list_files(int folder) {
  std::vector<CachedFile> files;
  const int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(copy < 0 ? nullptr : fdopendir(copy), closedir);
  while (entries != nullptr) {
    const dirent* entry = readdir(entries.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    struct stat st;
    if (!(name.ends_with(kEnding) || name.starts_with(kUnfinished)) ||
        fstatat(folder, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
      continue;
    files.push_back({std::string(name), static_cast<uint64_t>(st.st_size), st.st_mtim});
  }
  return files;
}

}  // namespace

Result<std::unique_ptr<TableCache>> TableCache::open(const std::string& path,
                                                     const TableCacheLimits& limits) {
  std::error_code failure;
  const std::filesystem::path folder(path);
  std::filesystem::create_directories(folder.parent_path(), failure);
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return errno_error(errno, "cannot make " + path);
  Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd) return errno_error(errno, "cannot open " + path);
  if (!is_private(fd.get(), S_IFDIR))
    return runtime_error("cannot use " + path +
                         " as a cache: others own it or may look into it; remove it");
  DWELL_ASSIGN(std::string key, find_or_make_key(fd.get()));
  auto cache = std::unique_ptr<TableCache>(new TableCache(std::move(fd), std::move(key), limits));
  cache->make_room();
  return cache;
}

std::string TableCache::name_of(const UnwindData& data) const {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       XXH3_freeState);
  XXH3_128bits_reset_withSecret(state.get(), key_.data(), key_.size());
  const uint64_t numbers[] = {unwind::kTableVersion, data.eh_frame_address, data.go_text_start,
                              data.code.size()};
  XXH3_128bits_update(state.get(), numbers, sizeof numbers);
  for (const unwind::CodeRange& range : data.code) {
    const uint64_t edges[] = {range.start, range.end};
    XXH3_128bits_update(state.get(), edges, sizeof edges);
  }
  add_bytes(*state, data.eh_frame);
  add_bytes(*state, data.debug_frame);
  add_bytes(*state, data.go_functions);
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{}-{:016x}{:016x}{}",
                     data.build_id.empty() ? "none" : data.build_id.substr(0, kBuildIdShown),
                     hash.high64, hash.low64, kEnding);
}

std::optional<unwind::Table> TableCache::find(const UnwindData& data) {
  const std::string name = name_of(data);
  const Fd file = open_private(folder_.get(), name.c_str());
  if (!file) return std::nullopt;
  const auto bytes = read_all(file.get(), name, limits_.file_bytes_max);
  auto table = bytes ? unwind::table_from_bytes(*bytes) : std::unexpected(bytes.error());
  if (!table) {
    ++refused_;
    unlinkat(folder_.get(), name.c_str(), 0);
    return std::nullopt;
  }
  futimens(file.get(), nullptr);  // used just now
  ++hits_;
  return std::move(*table);
}

void TableCache::store(const UnwindData& data, const unwind::Table& table) {
  if (table.rows.size() < limits_.rows_min) return;
  const std::string bytes = unwind::to_bytes(table);
  if (bytes.size() > limits_.file_bytes_max) return;
  if (!write_whole(folder_.get(), name_of(data), bytes)) return;
  ++stored_;
  make_room();
}

void TableCache::make_room() {
  const std::lock_guard lock(mutex_);
  std::vector<CachedFile> files = list_files(folder_.get());
  std::ranges::sort(files, [](const CachedFile& a, const CachedFile& b) {
    return std::tuple(a.used.tv_sec, a.used.tv_nsec) > std::tuple(b.used.tv_sec, b.used.tv_nsec);
  });
  uint64_t bytes = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    bytes += files[i].bytes;
    if (bytes > limits_.bytes_max || i >= limits_.files_max)
      unlinkat(folder_.get(), files[i].name.c_str(), 0);
  }
}

std::string default_cache_folder() {
  const auto absolute = [](const char* name) {
    const char* value = getenv(name);
    return value != nullptr && value[0] == '/' ? std::string(value) : std::string();
  };
  if (const std::string xdg = absolute("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/dwell";
  if (geteuid() == 0) return "/var/cache/dwell";
  const std::string home = absolute("HOME");
  return home.empty() ? "" : home + "/.cache/dwell";
}

}  // namespace dwell::symbolize
