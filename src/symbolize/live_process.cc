#include "symbolize/live_process.h"

#include <dirent.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "base/fd.h"

namespace dwell::symbolize {
namespace {

constexpr size_t kStatMax = 4096;
constexpr size_t kStatusMax = 64 << 10;

std::optional<StatFields> read_stat(const std::string& directory) {
  const auto text = read_file(directory + "/stat", kStatMax);
  return text ? parse_stat(*text) : std::nullopt;
}

bool has_memory(char state) { return state != 'Z' && state != 'X'; }

// A thread of a process whose leader has exited.
std::string find_living_thread(uint32_t pid) {
  const std::string tasks = fmt::format("/proc/{}/task", pid);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(tasks.c_str()), closedir);
  if (!directory) return {};
  for (int tried = 0; tried < LiveProcess::kThreadsTried;) {
    const dirent* entry = readdir(directory.get());
    if (entry == nullptr) break;
    if (entry->d_name[0] == '.') continue;
    ++tried;
    // /proc/TID works for every thread, though only leaders are listed.
    const std::string thread = std::string("/proc/") + entry->d_name;
    const auto stat = read_stat(thread);
    if (stat && has_memory(stat->state)) return thread;
  }
  return {};
}

// The rest of the line after `label` in /proc/PID/status.
std::string_view status_line(std::string_view status, std::string_view label) {
  size_t at = status.find(label);
  if (at == std::string_view::npos) return {};
  at += label.size();
  return status.substr(at, status.find('\n', at) - at);
}

std::optional<uint32_t> number_at(std::string_view text, size_t index, bool from_end) {
  std::vector<uint32_t> numbers;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    uint32_t value = 0;
    const auto [stop, failure] = std::from_chars(at, end, value);
    if (failure == std::errc{}) numbers.push_back(value);
    at = failure == std::errc{} ? stop : at + 1;
  }
  if (index >= numbers.size()) return std::nullopt;
  return from_end ? numbers[numbers.size() - 1 - index] : numbers[index];
}

}  // namespace

std::optional<StatFields> parse_stat(std::string_view text) {
  const size_t name_end = text.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= text.size()) return std::nullopt;
  std::string_view rest = text.substr(name_end + 2);
  StatFields fields;
  fields.state = rest.front();
  constexpr int kFieldsBefore = 19;  // state is field 3, starttime field 22
  for (int i = 0; i < kFieldsBefore; ++i) {
    const size_t blank = rest.find(' ');
    if (blank == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(blank + 1);
  }
  const auto [end, failure] =
      std::from_chars(rest.data(), rest.data() + rest.size(), fields.start_ticks);
  if (failure != std::errc{}) return std::nullopt;
  return fields;
}

std::string read_link(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t n = readlink(path.c_str(), target, sizeof(target));
  return n > 0 ? std::string(target, static_cast<size_t>(n)) : std::string();
}

std::optional<LiveProcess> LiveProcess::find(uint32_t pid) {
  std::string directory = fmt::format("/proc/{}", pid);
  const auto stat = read_stat(directory);
  if (!stat) return std::nullopt;
  if (!has_memory(stat->state)) directory = find_living_thread(pid);
  if (directory.empty()) return std::nullopt;
  return LiveProcess(pid, std::move(directory), stat->start_ticks);
}

std::vector<MapsLine> LiveProcess::executable_maps() const {
  const auto text = read_file(directory_ + "/maps", kMapsMax);
  return text ? parse_maps(*text) : std::vector<MapsLine>();
}

std::string LiveProcess::executable() const { return read_link(directory_ + "/exe"); }

std::string LiveProcess::command_line() const {
  const auto fd = open_for_reading(directory_ + "/cmdline");
  if (!fd) return {};
  std::string text(kCommandLineMax, '\0');
  const ssize_t n = read(fd->get(), text.data(), text.size());
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  while (!text.empty() && text.back() == '\0') text.pop_back();
  std::ranges::replace(text, '\0', ' ');
  return text;
}

std::string LiveProcess::root_link() const { return read_link(directory_ + "/root"); }

uint32_t LiveProcess::innermost_pid() const {
  const auto status = read_file(directory_ + "/status", kStatusMax);
  if (!status) return pid_;
  // NStgid, not NSpid: the map is named after the process, and `directory_` may be a thread's.
  return number_at(status_line(*status, "\nNStgid:"), 0, true).value_or(pid_);
}

std::optional<uint32_t> LiveProcess::user() const {
  const auto status = read_file(directory_ + "/status", kStatusMax);
  if (!status) return std::nullopt;
  return number_at(status_line(*status, "\nUid:"), 1, false);
}

}  // namespace dwell::symbolize
