#include "event_array/perf_kernel.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "event_array/bpf_map.h"
#include "event_array/cpu_list.h"

namespace dwell {
inline namespace v0 {
namespace {

std::unexpected<Error> explain(int code, pid_t tid, int cpu) {
  auto error = errno_error(code, fmt::format("cannot open a perf event on CPU {}", cpu));
  std::string& text = error.error().message;
  if (code == EMFILE || code == ENFILE)
    text += "; raise the limit of open files (ulimit -n, LimitNOFILE=): each CPU needs one";
  if (code == EACCES || code == EPERM) {
    text += "; run as root or with CAP_PERFMON, or lower kernel.perf_event_paranoid";
    error.error().kind = Error::Kind::kPrivilege;
  }
  if (code == ENODEV) text += "; the CPU is offline";
  if (code == ESRCH) text += fmt::format("; thread {} is gone", tid);
  return error;
}

class RealPerfKernel : public PerfKernel {
 public:
  Result<Fd> open_event(const perf_event_attr& attr, pid_t tid, int cpu) override {
    Fd fd(
        static_cast<int>(syscall(SYS_perf_event_open, &attr, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
    if (!fd) return explain(errno, tid, cpu);
    return fd;
  }
  Result<std::vector<uint32_t>> online_cpus() override { return read_cpu_list("online"); }
  Status set_slot(int map_fd, uint32_t index, int event_fd) override {
    return set_map_slot(map_fd, index, event_fd);
  }
  Status clear_slot(int map_fd, uint32_t index) override { return clear_map_slot(map_fd, index); }
};

}  // namespace

PerfKernel& PerfKernel::real() {
  static RealPerfKernel kernel;
  return kernel;
}

}  // namespace v0
}  // namespace dwell
