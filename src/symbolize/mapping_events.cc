#include "symbolize/mapping_events.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/clock.h"
#include "symbolize/process_maps.h"

namespace dwell::symbolize {
namespace {

perf_event_attr dummy_event() {
  perf_event_attr attr{};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.sample_type = PERF_SAMPLE_TIME;
  attr.sample_id_all = 1;
  attr.mmap = 1;
  attr.mmap2 = 1;
  attr.comm = 1;
  attr.comm_exec = 1;
  attr.task = 1;
  attr.use_clockid = 1;
  attr.clockid = CLOCK_MONOTONIC;  // the probe's clock
  attr.watermark = 1;
  attr.wakeup_watermark = 1;  // whoever sleeps on fd() hears of each record
  return attr;
}

int open_event(perf_event_attr attr, int cpu) {
  return static_cast<int>(syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC));
}

// The newest attributes that the kernel takes: build ids since 5.12, kernel symbols since 5.1.
Fd open_best_event(int cpu) {
  perf_event_attr attr = dummy_event();
  attr.ksymbol = 1;
  attr.build_id = 1;
  Fd fd(open_event(attr, cpu));
  if (fd || errno != EINVAL) return fd;
  attr.build_id = 0;
  fd = Fd(open_event(attr, cpu));
  if (fd || errno != EINVAL) return fd;
  attr.ksymbol = 0;
  return Fd(open_event(attr, cpu));
}

}  // namespace

MappingEvents::CpuRing::CpuRing(CpuRing&& other) noexcept
    : fd_(std::move(other.fd_)),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(other.bytes_),
      reader_(std::move(other.reader_)) {}

MappingEvents::CpuRing::~CpuRing() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

Result<MappingEvents::CpuRing> MappingEvents::CpuRing::open(int cpu) {
  CpuRing ring;
  ring.fd_ = open_best_event(cpu);
  if (!ring.fd_) return errno_error(errno, fmt::format("cannot open a perf event on CPU {}", cpu));
  DWELL_TRY(ring.map());
  return ring;
}

Status MappingEvents::CpuRing::map() {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  size_t data = std::max(kRingBytes, page);
  void* memory = MAP_FAILED;
  for (; data >= std::max(kSmallestRingBytes, page); data /= 2) {
    memory = mmap(nullptr, page + data, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
    if (memory != MAP_FAILED || errno != EPERM) break;  // EPERM: over perf_event_mlock_kb
  }
  if (memory == MAP_FAILED) return errno_error(errno, "cannot map the ring of a perf event");
  memory_ = memory;
  bytes_ = page + data;
  auto reader = RingReader::create(
      {static_cast<ring::MetaPage*>(memory), static_cast<std::byte*>(memory) + page, data, false});
  if (!reader) return std::unexpected(reader.error());
  reader_.emplace(std::move(*reader));
  return {};
}

Result<MappingEvents> MappingEvents::open() {
  MappingEvents events;
  const long cpus = sysconf(_SC_NPROCESSORS_CONF);
  for (int cpu = 0; cpu < cpus; ++cpu) {
    auto ring = CpuRing::open(cpu);
    // ENODEV: offline; EINVAL: no such CPU.
    if (!ring && (ring.error().code == ENODEV || ring.error().code == EINVAL)) continue;
    if (!ring) return std::unexpected(ring.error());
    DWELL_TRY(events.wake_by(*ring));
    events.rings_.push_back(std::move(*ring));
  }
  if (events.rings_.empty()) return runtime_error("cannot open a perf event on any CPU");
  return events;
}

Status MappingEvents::wake_by(const CpuRing& ring) {
  if (!wakes_) wakes_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLET;  // once: the event of a CPU that went offline stays in error
  if (!wakes_ || epoll_ctl(wakes_.get(), EPOLL_CTL_ADD, ring.fd(), &event) != 0)
    return errno_error(errno, "cannot wait for mapping events");
  return {};
}

const std::vector<MappingEvent>& MappingEvents::take() {
  const uint64_t until_ns = monotonic_ns();
  std::array<epoll_event, 64> woken;
  epoll_wait(wakes_.get(), woken.data(), woken.size(), 0);  // or fd() stays readable
  for (CpuRing& ring : rings_)
    ring.reader().drain({}, [&](const Record& record) {
      auto event = decode_mapping_record(record);
      if (!event) return;
      event->order = next_order_++;
      waiting_.push_back(std::move(*event));
    });
  std::ranges::sort(waiting_, {}, [](const MappingEvent& event) {
    return std::pair(event.time_ns, event.order);
  });
  const auto later = std::ranges::upper_bound(waiting_, until_ns, {}, &MappingEvent::time_ns);
  ready_.assign(std::make_move_iterator(waiting_.begin()), std::make_move_iterator(later));
  waiting_.erase(waiting_.begin(), later);
  return ready_;
}

uint64_t MappingEvents::lost() const {
  uint64_t lost = 0;
  for (const CpuRing& ring : rings_) lost += ring.reader().counts().lost;
  return lost;
}

}  // namespace dwell::symbolize
