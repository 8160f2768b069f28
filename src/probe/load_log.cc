#include "probe/load_log.h"

#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>

#include "base/fd.h"
#include "base/text.h"

namespace dwell::probe {
namespace {

constexpr size_t kLogBytesMax = 4 << 20;
std::string* current_log = nullptr;

int append_to_log(libbpf_print_level level, const char* format, va_list arguments) {
  if (level == LIBBPF_DEBUG || current_log == nullptr || current_log->size() > kLogBytesMax)
    return 0;
  va_list again;
  va_copy(again, arguments);
  std::string line(static_cast<size_t>(std::max(vsnprintf(nullptr, 0, format, again), 0)), '\0');
  va_end(again);
  vsnprintf(line.data(), line.size() + 1, format, arguments);
  // Harmless without CAP_SYS_RESOURCE: the kernel has not charged BPF memory to RLIMIT_MEMLOCK
  // since 5.11.
  if (line.find("RLIMIT_MEMLOCK") == std::string::npos) *current_log += line;
  return 0;
}

std::string last_lines(const std::string& text, int count) {
  size_t at = text.size();
  while (at > 0 && count >= 0)
    if (text[--at] == '\n') --count;
  return text.substr(at == 0 ? 0 : at + 1);
}

std::string save_log(const std::string& log) {
  std::string path = "/tmp/dwell-bpf-log.XXXXXX";
  Fd fd(mkstemp(path.data()));
  if (!fd || write(fd.get(), log.data(), log.size()) < 0) return "";
  return path;
}

}  // namespace

LoadLog::LoadLog() {
  current_log = new std::string;
  libbpf_set_print(append_to_log);
}

LoadLog::~LoadLog() {
  delete current_log;
  current_log = nullptr;
}

std::unexpected<Error> LoadLog::explain(int code) const {
  utsname system = {};
  uname(&system);
  const bool verified = current_log->find("\nprocessed ") != std::string::npos;
  if ((code == EPERM || code == EACCES) && !verified) {
    return privilege_error(
        fmt::format("the kernel refuses to load BPF programs ({}): run as root, or with CAP_BPF "
                    "and CAP_PERFMON; a container's "
                    "seccomp profile or kernel lockdown can refuse too. `dwell doctor` tells which",
                    strerrorname_np(code)));
  }
  if (code == EMFILE || code == ENFILE)
    return runtime_error(
        fmt::format("too many open files: the probe needs about 48 descriptors; raise the limit "
                    "(ulimit -n 1024) ({})",
                    strerrorname_np(code)));
  std::string text;
  for (const char c : last_lines(*current_log, 20))
    text += c == '\n' ? "\n  " : printable(std::string_view(&c, 1));
  const std::string path = current_log->size() > text.size() ? save_log(*current_log) : "";
  return privilege_error(fmt::format("kernel {} refuses the probe ({}){}:\n  {}", system.release,
                                     strerrorname_np(code) ?: std::to_string(code).c_str(),
                                     path.empty() ? "" : "; the whole log is in " + path, text));
}

std::string LoadLog::verdict() const {
  const size_t end = current_log->find("\nprocessed ");
  if (end == std::string::npos) return "";
  const size_t line = current_log->rfind('\n', end - 1) + 1;
  return printable(std::string_view(*current_log).substr(line, end - line));
}

}  // namespace dwell::probe
