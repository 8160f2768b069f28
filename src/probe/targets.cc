#include "probe/targets.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <string>

#include "base/fd.h"

namespace dwell::probe {
namespace {

constexpr uint64_t kNsPerTick = 10'000'000;         // USER_HZ is 100 on every Linux
constexpr ino_t kInitialPidNamespace = 0xEFFFFFFC;  // PROC_PID_INIT_INO, include/linux/proc_ns.h

constexpr uint64_t kKernelThread = 0x200000;  // PF_KTHREAD, include/linux/sched.h
constexpr size_t kFlagsField = 9, kStartField = 22;

// A number of a stat line, by its field as proc(5) counts. The command in field 2 may hold blanks
// and parentheses: count from the last ')'.
Result<uint64_t> stat_number(const std::string& stat_line, size_t field, const std::string& path) {
  size_t at = stat_line.rfind(')');
  for (size_t before = 2; before < field && at != std::string::npos; ++before)
    at = stat_line.find(' ', at + 1);
  uint64_t number = 0;
  if (at == std::string::npos ||
      std::from_chars(stat_line.data() + at + 1, stat_line.data() + stat_line.size(), number).ec !=
          std::errc{})
    return runtime_error(fmt::format("cannot read field {} of {}: unknown format", field, path));
  return number;
}

Result<Target> read_target(uint32_t id, bool is_thread, const std::string& path) {
  DWELL_ASSIGN(std::string line, read_file(path, 1 << 16));
  DWELL_ASSIGN(const uint64_t ticks, stat_number(line, kStartField, path));
  DWELL_ASSIGN(const uint64_t flags, stat_number(line, kFlagsField, path));
  return Target{id, is_thread, (flags & kKernelThread) != 0, ticks * kNsPerTick};
}

// The Tgid line of /proc/ID/status, 0 if there is no such task. Threads have a /proc/TID that
// readdir does not list.
uint32_t process_of(uint32_t tid) {
  const auto status = read_file(fmt::format("/proc/{}/status", tid), 1 << 16);
  if (!status) return 0;
  const size_t at = status->find("\nTgid:");
  if (at == std::string::npos) return 0;
  return static_cast<uint32_t>(std::strtoul(status->c_str() + at + 6, nullptr, 10));
}

}  // namespace

Result<Target> find_process(uint32_t pid) {
  const uint32_t process = process_of(pid);
  if (pid == 0 || process == 0)
    return usage_error(
        fmt::format("there is no process {}; `ps -e` lists those that there are", pid));
  if (process != pid)
    return usage_error(fmt::format(
        "{0} is a thread of process {1}; record it with -t {0}, or its process with -p {1}", pid,
        process));
  return read_target(pid, false, fmt::format("/proc/{}/stat", pid));
}

Result<Target> find_thread(uint32_t tid) {
  const uint32_t process = process_of(tid);
  if (tid == 0 || process == 0)
    return usage_error(
        fmt::format("there is no thread {}; `ps -eL` lists those that there are", tid));
  return read_target(tid, true, fmt::format("/proc/{}/task/{}/stat", process, tid));
}

Status check_pid_namespace() {
  struct stat st;
  if (stat("/proc/self/ns/pid", &st) != 0)
    return errno_error(errno,
                       "cannot look up the PID namespace in /proc/self/ns/pid; is /proc mounted?");
  if (st.st_ino == kInitialPidNamespace) return {};
  return privilege_error(
      "dwell runs inside a PID namespace, where process ids are not those of the kernel; run it on "
      "the host "
      "(a container needs the host's PID namespace, for example --pid=host)");
}

}  // namespace dwell::probe
