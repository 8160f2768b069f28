#include "event_array/perf_ring.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/text.h"

#ifndef PERF_FORMAT_LOST
#define PERF_FORMAT_LOST (1U << 4)  // Linux 6.0
#endif

namespace dwell {
inline namespace v0 {
namespace {

uint64_t page_bytes() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

std::string first_line(const char* path) {
  auto text = read_file(path, 4096);
  if (!text) return "?";
  return text->substr(0, text->find('\n'));
}

std::unexpected<Error> explain_mmap(int code, uint64_t bytes) {
  auto error = errno_error(code, fmt::format("cannot map a perf ring of {}", format_bytes(bytes)));
  if (code != EPERM) return error;
  rlimit limit = {};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  error.error().kind = Error::Kind::kPrivilege;
  error.error().message += fmt::format(
      ": it needs {} bytes of locked memory, allowed are kernel.perf_event_mlock_kb = {} KiB per "
      "CPU and RLIMIT_MEMLOCK = {} bytes; ask for smaller rings, raise one of the two, or run with "
      "CAP_IPC_LOCK",
      bytes, first_line("/proc/sys/kernel/perf_event_mlock_kb"),
      limit.rlim_cur == RLIM_INFINITY ? std::string("unlimited") : std::to_string(limit.rlim_cur));
  return error;
}

}  // namespace

perf_event_attr bpf_output_attr(const PerfRingOptions& options) {
  perf_event_attr attr = {};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_BPF_OUTPUT;
  attr.sample_period = 1;
  attr.sample_type = PERF_SAMPLE_RAW;
  if (options.timestamps) {
    attr.sample_type |= PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
    attr.sample_id_all = 1;
    attr.use_clockid = 1;
    attr.clockid = CLOCK_MONOTONIC;
  }
  attr.disabled = 1;
  attr.write_backward = options.backward;
  if (options.wakeup.watermark_bytes != 0) {
    attr.watermark = 1;
    attr.wakeup_watermark = static_cast<uint32_t>(options.wakeup.watermark_bytes);
  } else {
    attr.wakeup_events = options.wakeup.every_n_events;
  }
  return attr;
}

Result<std::unique_ptr<PerfRing>> PerfRing::open(PerfKernel& kernel, uint32_t cpu,
                                                 const PerfRingOptions& options) {
  DWELL_ASSIGN(auto ring, open(kernel, static_cast<int>(cpu), options.tid, bpf_output_attr(options),
                               options.data_bytes));
  DWELL_TRY(ring->enable());
  return ring;
}

Status PerfRing::enable() {
  if (ioctl(event_.get(), PERF_EVENT_IOC_ENABLE, 0) != 0)
    return errno_error(errno, "cannot enable a perf event");
  return {};
}

Result<std::unique_ptr<PerfRing>> PerfRing::open(PerfKernel& kernel, int cpu, pid_t tid,
                                                 perf_event_attr attr, uint64_t data_bytes) {
  std::unique_ptr<PerfRing> ring(new PerfRing);
  attr.read_format |= PERF_FORMAT_LOST;
  auto event = kernel.open_event(attr, tid, cpu);
  ring->exact_loss_ = event.has_value();
  if (!event && event.error().code == EINVAL) {  // a kernel before 6.0
    attr.read_format &= ~uint64_t{PERF_FORMAT_LOST};
    event = kernel.open_event(attr, tid, cpu);
  }
  if (!event) return std::unexpected(event.error());
  ring->event_ = std::move(*event);
  ring->format_ = {attr.sample_type, attr.read_format, attr.sample_id_all != 0, false};
  DWELL_TRY(ring->map(data_bytes, attr.write_backward != 0));
  return ring;
}

Status PerfRing::map(uint64_t data_bytes, bool backward) {
  const uint64_t page = page_bytes();
  // The kernel overwrites only where the first mapping cannot write.
  const int protection = backward ? PROT_READ : PROT_READ | PROT_WRITE;
  void* at = mmap(nullptr, page + data_bytes, protection, MAP_SHARED, event_.get(), 0);
  if (at == MAP_FAILED) return explain_mmap(errno, page + data_bytes);
  mapping_ = Mapping(at, page + data_bytes);
  data_bytes_ = data_bytes;
  RingMemory memory;
  memory.meta = reinterpret_cast<ring::MetaPage*>(mapping_.data());
  memory.data = mapping_.data() + page;
  memory.data_size = data_bytes;
  if (backward) {
    DWELL_ASSIGN(BackwardReader reader, BackwardReader::create(memory));
    backward_ = std::make_unique<BackwardReader>(std::move(reader));
    return {};
  }
  DWELL_ASSIGN(RingReader reader, RingReader::create(memory));
  reader_.emplace(std::move(reader));
  return {};
}

std::optional<uint64_t> PerfRing::exact_lost() {
  if (!exact_loss_) return std::nullopt;
  // value, [time enabled, time running], [id], lost: the count comes last.
  uint64_t values[5] = {};
  const ssize_t n = read(event_.get(), values, sizeof values);
  if (n < 16 || n % 8 != 0) return std::nullopt;
  return values[n / 8 - 1];
}

Status PerfRing::pause(bool paused) {
  // The argument is a value, not a pointer, whatever its _IOW says.
  if (ioctl(event_.get(), PERF_EVENT_IOC_PAUSE_OUTPUT, paused ? 1ul : 0ul) != 0)
    return errno_error(errno, paused ? "cannot pause a perf ring" : "cannot resume a perf ring");
  return {};
}

Status PerfRing::snapshot(const SnapshotSink& sink) {
  if (backward_ == nullptr) return usage_error("only an overwriting ring has snapshots");
  DWELL_TRY(pause(true));
  backward_->take_snapshot();
  DWELL_TRY(pause(false));
  while (const Record* record = backward_->next())
    if (!sink(*record)) break;
  return {};
}

}  // namespace v0
}  // namespace dwell
