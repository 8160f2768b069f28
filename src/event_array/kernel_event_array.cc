#include "event_array/kernel_event_array.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/bpf.h>
#include <linux/membarrier.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "event_array/cpu_list.h"

namespace dwell {
inline namespace v0 {
namespace {

constexpr uint32_t kWakeTag = UINT32_MAX;  // epoll data of the wake descriptor

RecordFormat format_of(const KernelEventArrayOptions& options) {
  const perf_event_attr attr = bpf_output_attr({.timestamps = options.timestamps});
  return {attr.sample_type, attr.read_format, attr.sample_id_all != 0, false};
}

uint64_t page_bytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

Result<Fd> duplicate(int fd) {
  Fd copy(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!copy) return errno_error(errno, "cannot duplicate the descriptor of a BPF map");
  return copy;
}

bool contains(const std::vector<uint32_t>& sorted, uint32_t cpu) {
  return std::binary_search(sorted.begin(), sorted.end(), cpu);
}

}  // namespace

Result<std::unique_ptr<KernelEventArray>> KernelEventArray::open(
    int map_fd, const KernelEventArrayOptions& options) {
  DWELL_ASSIGN(const BpfMapInfo info, require_perf_event_array(map_fd));
  auto own = open_map_by_id(info.id);
  // Only CAP_SYS_ADMIN opens by id. A copy does as well: slots are emptied when the array closes,
  // not when the last descriptor goes.
  if (!own && own.error().code == EPERM) own = duplicate(map_fd);
  if (!own) return std::unexpected(own.error());
  std::unique_ptr<KernelEventArray> array(new KernelEventArray(std::move(*own), info, options));
  DWELL_TRY(array->start());
  return array;
}

Result<std::unique_ptr<KernelEventArray>> KernelEventArray::open_pinned(
    const std::string& path, const KernelEventArrayOptions& options) {
  DWELL_ASSIGN(const Fd fd, open_pinned_map(path));
  return open(fd.get(), options);
}

Result<std::unique_ptr<KernelEventArray>> KernelEventArray::open_id(
    uint32_t map_id, const KernelEventArrayOptions& options) {
  DWELL_ASSIGN(const Fd fd, open_map_by_id(map_id));
  return open(fd.get(), options);
}

KernelEventArray::KernelEventArray(Fd map_fd, const BpfMapInfo& map,
                                   const KernelEventArrayOptions& options)
    : EventArray(std::min(map.max_entries, kMaxCpus), format_of(options), options.wait),
      map_fd_(std::move(map_fd)),
      map_(map),
      options_(options),
      kernel_(options.kernel != nullptr ? *options.kernel : PerfKernel::real()),
      filled_(std::make_unique<std::atomic<bool>[]>(slots())) {
  std::sort(options_.cpus.begin(), options_.cpus.end());
}

KernelEventArray::~KernelEventArray() { close(); }

bool KernelEventArray::wants(uint32_t cpu) const {
  return cpu < slots() && (options_.cpus.empty() || contains(options_.cpus, cpu));
}

Status KernelEventArray::start() {
  DWELL_TRY(create_wake_fd());
  epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return errno_error(errno, "cannot create an epoll descriptor");
  DWELL_TRY(watch(kWakeTag, wake_fd()));
  DWELL_TRY(plan_cpus());
  const uint64_t page = page_bytes();
  for (;;) {
    const Status opened = open_all();
    if (opened) break;
    const bool memory = opened.error().code == EPERM || opened.error().code == ENOMEM;
    if (!memory || !options_.shrink_to_fit || ring_options_.data_bytes <= page) return opened;
    // The rings share one allowance, so that all of them shrink.
    remove_rings();
    DWELL_TRY(plan_sizes(ring_options_.data_bytes / 2));
  }
  if (ring_count() == 0)
    return usage_error(fmt::format("map '{}' with {} slots covers no CPU that is online ({})",
                                   map_.name, map_.max_entries, format_cpu_list(online_)));
  return {};
}

Status KernelEventArray::open_all() {
  const std::vector<uint32_t> found = online_;
  for (const uint32_t cpu : found)
    if (wants(cpu)) DWELL_TRY(open_ring(cpu));
  return {};
}

// Decides sizes and wake-ups for the CPUs that are there.
Status KernelEventArray::plan_cpus() {
  DWELL_ASSIGN(online_, kernel_.online_cpus());
  uint32_t rings = 0;
  for (const uint32_t cpu : online_) {
    rings += wants(cpu);
    if (cpu >= slots()) report_.uncovered.push_back(cpu);
  }
  report_.spare_slots = map_.max_entries - std::min(rings, map_.max_entries);
  ring_options_.backward = options_.overwrite;
  ring_options_.timestamps = options_.timestamps;
  ring_options_.tid = options_.tid;
  DWELL_ASSIGN(const uint64_t bytes, effective_ring_bytes(options_.size, rings, page_bytes()));
  DWELL_TRY(plan_sizes(bytes));
  if (!report_.uncovered.empty())
    report_.warnings.push_back(
        fmt::format("map '{}' has {} slots; outputs on CPUs {} fail with E2BIG", map_.name,
                    map_.max_entries, format_cpu_list(report_.uncovered)));
  if (auto warning = payload_warning(options_.max_payload, report_.ring_bytes, true))
    report_.warnings.push_back(std::move(*warning));
  return {};
}

Status KernelEventArray::plan_sizes(uint64_t ring_bytes) {
  DWELL_ASSIGN(const Wakeup wakeup, effective_wakeup(options_.wakeup, ring_bytes));
  ring_options_.data_bytes = report_.ring_bytes = ring_bytes;
  ring_options_.wakeup = report_.wakeup = wakeup;
  return {};
}

// Opens, maps, enables, and only then fills the slot: no output finds a ring that is not ready.
Status KernelEventArray::open_ring(uint32_t cpu) {
  auto ring = PerfRing::open(kernel_, cpu, ring_options_);
  if (!ring) {
    if (ring.error().code != ENODEV) return std::unexpected(ring.error());
    // Went between the list and the call. Not in online_: a later scan will find it new.
    report_.offline.push_back(cpu);
    std::erase(online_, cpu);
    return {};
  }
  const int event_fd = (*ring)->fd();
  DWELL_TRY(watch(cpu, event_fd));
  DWELL_TRY(kernel_.set_slot(map_fd_.get(), cpu, event_fd));
  filled_[cpu] = true;
  install(cpu, std::move(*ring));
  if (closed()) return release_slots();  // close() came in between and did not see this one
  return {};
}

Status KernelEventArray::watch(uint32_t cpu, int event_fd) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u32 = cpu;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, event_fd, &event) != 0)
    return errno_error(errno, fmt::format("cannot watch the perf event of CPU {}", cpu));
  return {};
}

Status KernelEventArray::sleep(std::chrono::nanoseconds timeout) {
  constexpr int kEvents = 64;
  epoll_event events[kEvents];
  timespec limit = {};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
  limit.tv_sec = seconds.count();
  limit.tv_nsec = (timeout - seconds).count();
  const int n =
      epoll_pwait2(epoll_.get(), events, kEvents, timeout == kForever ? nullptr : &limit, nullptr);
  if (n < 0) return errno_error(errno, "cannot wait for a perf event array");
  for (int i = 0; i < n; ++i) {
    const uint32_t cpu = events[i].data.u32;
    if (cpu == kWakeTag || (events[i].events & (EPOLLHUP | EPOLLERR)) == 0) continue;
    // The event is dead (its thread ended, its CPU went): heads are looked at all the same, and
    // watching on would never sleep again.
    std::lock_guard lock(slot(cpu).mutex);
    if (slot(cpu).ring != nullptr)
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, slot(cpu).ring->fd(), nullptr);
  }
  return {};
}

Status KernelEventArray::detach() {
  DWELL_TRY(release_slots());
  // A program takes a ring out of its slot and writes within one RCU read section; this command is
  // a grace period (kernel/sched/membarrier.c).
  (void)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
  return {};
}

// Takes no lock: a consumer may call close().
Status KernelEventArray::release_slots() {
  Status result;
  for (uint32_t cpu = 0; cpu < slots(); ++cpu) {
    if (!filled_[cpu].exchange(false)) continue;
    if (auto status = kernel_.clear_slot(map_fd_.get(), cpu); !status) result = std::move(status);
  }
  return result;
}

// A CPU that came up gets a ring. One that went and came back needs a new event: the kernel leaves
// the old one off (-EOPNOTSUPP to the program). What the old ring holds is drained first.
Status KernelEventArray::rescan() {
  std::lock_guard lock(rescan_mutex_);
  if (closed() || options_.tid >= 0) return {};
  DWELL_ASSIGN(const std::vector<uint32_t> now, kernel_.online_cpus());
  if (now == online_) {
    // A CPU may have gone and returned between two looks.
    for (const uint32_t cpu : now) revive(cpu);
    return {};
  }
  const std::vector<uint32_t> before = std::exchange(online_, now);
  for (const uint32_t cpu : now)
    if (!contains(before, cpu) && wants(cpu)) DWELL_TRY(open_ring(cpu));
  return {};
}

void KernelEventArray::revive(uint32_t cpu) {
  if (!wants(cpu)) return;
  std::lock_guard lock(slot(cpu).mutex);
  if (slot(cpu).ring != nullptr) (void)static_cast<PerfRing&>(*slot(cpu).ring).enable();
}

Status KernelEventArray::swap_snapshot(uint32_t cpu, const SnapshotSink& sink) {
  if (!options_.overwrite) return usage_error("only an overwriting array has snapshots");
  if (closed() || !has_ring(cpu))
    return usage_error(fmt::format("cannot take a snapshot: CPU {} has no ring", cpu));
  DWELL_ASSIGN(std::unique_ptr<EventRing> fresh, PerfRing::open(kernel_, cpu, ring_options_));
  DWELL_TRY(kernel_.set_slot(map_fd_.get(), cpu, fresh->fd()));
  std::unique_ptr<EventRing> old;
  {
    std::lock_guard lock(slot(cpu).mutex);
    old = std::exchange(slot(cpu).ring, std::move(fresh));
  }
  // A program that is still running may hold the old ring; snapshot() pauses it for the copy.
  return old->snapshot(sink);
}

}  // namespace v0
}  // namespace dwell
