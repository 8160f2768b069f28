#include "symbolize/debug_servers.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/text.h"
#include "symbolize/elf_file.h"
#include "symbolize/object_files.h"
#include "symbolize/work_apart.h"

namespace dwell::symbolize {
namespace {

constexpr const char* kLibrary = "libdebuginfod.so.1";
constexpr size_t kPathMax = 4096;
constexpr int kNoLibrary = -ELIBACC;  // beside what libdebuginfod itself answers
constexpr std::chrono::seconds kFirstBytesPatience{20};

// Those of libdebuginfod that are needed; its interface is stable.
struct Library {
  using Client = void;
  Client* (*begin)() = nullptr;
  int (*find_debuginfo)(Client*, const unsigned char* build_id, int bytes, char** path) = nullptr;
  void (*set_progress)(Client*, int (*)(Client*, long, long)) = nullptr;

  bool load() {
    void* library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return false;
    const auto find = [&](auto& function, const char* name) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      return function != nullptr;
    };
    return find(begin, "debuginfod_begin") && find(find_debuginfo, "debuginfod_find_debuginfo") &&
           find(set_progress, "debuginfod_set_progressfn");
  }
};

// On a terminal, over the line that says what is fetched.
int show_progress(void*, long done, long all) {
  if (all <= 0 || done <= 0 || isatty(STDERR_FILENO) != 1) return 0;
  fmt::print(stderr, "\r{} of {}   ", format_bytes(static_cast<uint64_t>(done)),
             format_bytes(static_cast<uint64_t>(all)));
  return 0;
}

void set_default(const char* name, uint64_t value) {
  setenv(name, std::to_string(value).c_str(), 0);
}

// The child: an int, the library's answer, and then the path if it is not negative.
void ask_servers(const std::string& build_id, const ServerLimits& limits, int fd) {
  // The servers say how much; they may lie. Without the signal the library removes what is there.
  set_hard_limit(RLIMIT_FSIZE, limits.file_bytes);
  signal(SIGXFSZ, SIG_IGN);
  set_default("DEBUGINFOD_MAXSIZE", limits.file_bytes);
  set_default("DEBUGINFOD_MAXTIME", static_cast<uint64_t>(limits.patience.count()));
  set_default("DEBUGINFOD_TIMEOUT", static_cast<uint64_t>(kFirstBytesPatience.count()));
  Library library;
  char* path = nullptr;
  int result = kNoLibrary;
  if (library.load()) {
    void* client = library.begin();
    result = client == nullptr ? -ENOMEM : 0;
    if (client != nullptr) {
      library.set_progress(client, show_progress);
      const auto* id = reinterpret_cast<const unsigned char*>(build_id.c_str());
      result = library.find_debuginfo(client, id, 0, &path);  // 0: in hexadecimal digits
    }
  }
  write_or_end(fd, &result, sizeof(result));
  if (result >= 0 && path != nullptr) write_or_end(fd, path, strnlen(path, kPathMax));
}

std::string reason_of(int result) {
  if (result == kNoLibrary)
    return fmt::format("{} is not installed (package libdebuginfod1)", kLibrary);
  if (result == -ENOENT) return "the servers do not have it";
  return fmt::format("the servers gave no answer that is of use: {}", strerror(-result));
}

bool is_hex(const std::string& build_id) {
  return !build_id.empty() && build_id.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Status check_build_id(const std::string& path, const std::string& build_id) {
  DWELL_ASSIGN(const Fd file, open_for_reading(path));
  DWELL_ASSIGN(const FileBytes bytes, FileBytes::of_file(file.get(), path));
  DWELL_ASSIGN(ElfFile elf, ElfFile::read(bytes));
  if (elf.build_id().empty()) DWELL_TRY(elf.read_sections());
  if (elf.build_id() == build_id) return {};
  return runtime_error("what the servers sent is of another build");
}

}  // namespace

Result<DebugServers> DebugServers::create(const ServerLimits& limits) {
  const char* urls = getenv("DEBUGINFOD_URLS");
  const std::string_view text = urls == nullptr ? "" : urls;
  if (text.find_first_not_of(' ') == std::string_view::npos)
    return usage_error(
        "no debuginfod server is named; set DEBUGINFOD_URLS, for example to "
        "http://localhost:8002");
  return DebugServers(limits);
}

Result<std::string> DebugServers::ask(const std::string& build_id) {
  const auto left = std::chrono::duration_cast<std::chrono::seconds>(end_ - Clock::now());
  // The cache is the caller's own.
  const ApartLimits apart{std::min(limits_.patience, left), limits_.memory_bytes,
                          sizeof(int) + kPathMax, false};
  DWELL_ASSIGN(const ApartAnswer answer,
               work_apart(apart, [&](int fd) { ask_servers(build_id, limits_, fd); }));
  int result = -ETIME;
  if (answer.end == ApartAnswer::End::kWhole && answer.bytes.size() >= sizeof(result))
    std::memcpy(&result, answer.bytes.data(), sizeof(result));
  failures_ = result >= 0 || result == -ENOENT ? 0 : failures_ + 1;
  if (answer.end == ApartAnswer::End::kDied)
    return runtime_error("asking the servers failed: " + answer.death);
  if (result == kNoLibrary) failures_ = ServerLimits::kFailuresMax;
  if (result < 0) return runtime_error(reason_of(result));
  std::string path = answer.bytes.substr(sizeof(result));
  DWELL_TRY(check_build_id(path, build_id));
  return path;
}

Result<std::string> DebugServers::fetch(const std::string& build_id, const std::string& name) {
  if (!is_hex(build_id)) return runtime_error("it has no build id to ask the servers for");
  if (failures_ >= ServerLimits::kFailuresMax)
    return runtime_error("debuginfod was not asked any more: it gave no answer before");
  if (Clock::now() + std::chrono::seconds(1) >= end_)
    return runtime_error(fmt::format("debuginfod was not asked any more: {} s are over",
                                     limits_.patience_all.count()));
  fmt::print(stderr, "debuginfod: asking for the debug file of {}\n", printable(name));
  auto path = ask(build_id);
  if (isatty(STDERR_FILENO) == 1) fmt::print(stderr, "\r");
  if (!path) fmt::print(stderr, "debuginfod: {}\n", printable(path.error().message));
  return path;
}

}  // namespace dwell::symbolize
