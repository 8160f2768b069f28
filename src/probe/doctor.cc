#include "probe/doctor.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/fd.h"
#include "base/text.h"
#include "probe/scheduler_code.h"
#include "probe/targets.h"

namespace dwell::probe {
namespace {

using Outcome = Check::Outcome;

std::string first_line(const std::string& path) {
  const auto text = read_file(path, 1 << 16);
  return text ? printable(text->substr(0, text->find('\n'))) : "";
}

Check check_kernel() {
  utsname system = {};
  uname(&system);
  int major = 0, minor = 0;
  std::sscanf(system.release, "%d.%d", &major, &minor);
  const bool new_enough = major > 5 || (major == 5 && minor >= 10);
  return {"kernel", new_enough ? Outcome::kGood : Outcome::kMissing,
          fmt::format("Linux {}", system.release),
          new_enough ? "" : "dwell needs Linux 5.10 or newer"};
}

Check check_architecture() {
  utsname system = {};
  uname(&system);
  const bool known = std::strcmp(system.machine, "x86_64") == 0;
  return {"architecture", known ? Outcome::kGood : Outcome::kMissing, system.machine,
          known ? "" : "dwell records on x86-64 only"};
}

Check check_btf() {
  const std::unique_ptr<btf, void (*)(btf*)> kernel(btf__load_vmlinux_btf(), btf__free);
  if (!kernel)
    return {"BTF", Outcome::kMissing,
            "the kernel has no BTF: /sys/kernel/btf/vmlinux cannot be read",
            "boot a kernel with CONFIG_DEBUG_INFO_BTF=y (every Debian kernel since 11), and mount "
            "/sys: "
            "mount -t sysfs sysfs /sys"};
  const bool hook =
      btf__find_by_name_kind(kernel.get(), "btf_trace_sched_switch", BTF_KIND_TYPEDEF) > 0;
  return {"BTF", hook ? Outcome::kGood : Outcome::kMissing,
          hook ? "/sys/kernel/btf/vmlinux, with the scheduler's tracepoints"
               : "BTF without scheduler tracepoints",
          hook ? "" : "boot a kernel with CONFIG_TRACEPOINTS=y and CONFIG_BPF_EVENTS=y"};
}

Check check_capabilities() {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  syscall(SYS_capget, &header, data);
  const auto has = [&](int capability) {
    return (data[capability / 32].effective >> (capability % 32) & 1) != 0;
  };
  std::string missing;
  if (!has(CAP_SYS_ADMIN)) {
    if (!has(CAP_BPF)) missing += " CAP_BPF";
    if (!has(CAP_PERFMON)) missing += " CAP_PERFMON";
  }
  if (!missing.empty())
    return {
        "capabilities", Outcome::kMissing, "missing:" + missing,
        "run as root, or: setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog+ep $(which dwell)"};
  if (!has(CAP_SYS_PTRACE) && !has(CAP_SYS_ADMIN))
    return {
        "capabilities", Outcome::kLimited, "CAP_BPF and CAP_PERFMON, but no CAP_SYS_PTRACE",
        "without CAP_SYS_PTRACE the programs of other users keep their addresses without names"};
  return {"capabilities", Outcome::kGood, "all that is needed", ""};
}

Check check_lockdown() {
  const std::string mode = first_line("/sys/kernel/security/lockdown");
  if (mode.find("[confidentiality]") != std::string::npos)
    return {"lockdown", Outcome::kMissing,
            "the kernel is locked down (confidentiality): BPF may not read its memory",
            "boot without lockdown=confidentiality, or with lockdown=integrity"};
  return {"lockdown", Outcome::kGood, mode.empty() ? "none (or securityfs is not mounted)" : mode,
          ""};
}

// Creates the very kind of map the probe needs: tells seccomp, capabilities and memory limits apart
// by the error.
Check check_bpf_calls() {
  LIBBPF_OPTS(bpf_map_create_opts, create);
  const Fd map(bpf_map_create(BPF_MAP_TYPE_HASH, "dwell_doctor", 8, 8, 64, &create));
  if (map) return {"bpf()", Outcome::kGood, "maps can be created", ""};
  const int code = errno;
  if (code == ENOSYS)
    return {"bpf()", Outcome::kMissing, "the bpf() call is not there (ENOSYS)",
            "a seccomp profile hides it: run the container with --privileged or --security-opt "
            "seccomp=unconfined; or "
            "the kernel lacks CONFIG_BPF_SYSCALL"};
  if (code == EPERM || code == EACCES)
    return {"bpf()", Outcome::kMissing,
            fmt::format("the bpf() call is refused ({})", strerrorname_np(code)),
            "run as root or with CAP_BPF and CAP_PERFMON; in a container also lift its seccomp "
            "profile"};
  return {"bpf()", Outcome::kMissing,
          fmt::format("a map cannot be created ({})", strerrorname_np(code)),
          "raise the limit of locked memory (ulimit -l unlimited) on kernels before 5.11"};
}

Check check_kernel_names() {
  if (find_scheduler_code().text().start != 0)
    return {"kernel names", Outcome::kGood, "/proc/kallsyms shows addresses", ""};
  const std::string restrict_level = first_line("/proc/sys/kernel/kptr_restrict");
  return {"kernel names", Outcome::kLimited,
          fmt::format("/proc/kallsyms hides addresses (kernel.kptr_restrict={})", restrict_level),
          "kernel frames stay without names, and each kernel stack has to be walked: "
          "sysctl kernel.kptr_restrict=1, and CAP_SYSLOG"};
}

Check check_perf_events() {
  const std::string level = first_line("/proc/sys/kernel/perf_event_paranoid");
  return {"mapping events", Outcome::kGood,
          fmt::format("kernel.perf_event_paranoid={} (dwell needs CAP_PERFMON, not a lower level)",
                      level),
          ""};
}

Check check_memory_lock() {
  rlimit limit = {};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  return {"locked memory", Outcome::kGood,
          limit.rlim_cur == RLIM_INFINITY
              ? "unlimited"
              : format_bytes(limit.rlim_cur) + " (BPF has not counted since 5.11)",
          ""};
}

Check check_namespace() {
  const Status status = check_pid_namespace();
  if (status) return {"PID namespace", Outcome::kGood, "the initial one", ""};
  return {"PID namespace", Outcome::kMissing, "not the initial one", status.error().message};
}

Check check_tracefs() {
  return {"tracefs", Outcome::kGood, "not needed: the probe attaches through BTF", ""};
}

}  // namespace

std::vector<Check> examine_machine() {
  return {check_kernel(),      check_architecture(), check_btf(),       check_capabilities(),
          check_bpf_calls(),   check_lockdown(),     check_namespace(), check_kernel_names(),
          check_perf_events(), check_memory_lock(),  check_tracefs()};
}

std::string reasons_against(const std::vector<Check>& checks) {
  std::string text;
  for (const Check& check : checks)
    if (check.outcome == Outcome::kMissing)
      text += fmt::format("{}{}: {}; {}", text.empty() ? "" : "\n  ", check.name, check.found,
                          check.remedy);
  return text;
}

}  // namespace dwell::probe
