#include "event_array/user_event_map.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "event_array/cpu_list.h"
#include "event_array/restartable_put.h"
#include "event_array/ring_lock.h"
#include "event_array/wake_fence.h"
#include "ring/placement.h"
#include "ring/ring_writer.h"

namespace dwell {
inline namespace v0 {
namespace {

constexpr int kNotSupported = 524;  // ENOTSUPP of the kernel, which has no name in user space
// A sequence is restarted by each preemption, signal and faster producer. More than this means that
// something is storming, and the caller must get on.
constexpr int kMostRestarts = 1000;
constexpr int kMovedAway = 1;

std::unexpected<Error> invalid(std::string message) {
  auto error = usage_error(std::move(message));
  error.error().code = EINVAL;
  return error;
}

ring::MetaExtension& extension_of(const RingMemory& ring) { return ring.meta->extension; }

}  // namespace

Result<std::unique_ptr<UserEventMap>> UserEventMap::create(const UserEventMapOptions& options) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  if (!ring::is_power_of_two(options.ring_bytes) || options.ring_bytes < page ||
      options.ring_bytes > kMaxRingBytes)
    return invalid(fmt::format(
        "cannot create an event map with rings of {} bytes: a power of two from {} to {} is needed",
        options.ring_bytes, page, kMaxRingBytes));
  DWELL_ASSIGN(const std::vector<uint32_t> possible, read_cpu_list("possible"));
  const uint32_t real_cpus = possible.empty() ? 1 : possible.back() + 1;
  const uint32_t cpus = options.simulated_cpus != 0 ? options.simulated_cpus : real_cpus;
  UserMapLayout layout;
  layout.slots = options.max_entries == 0 ? cpus : options.max_entries;
  layout.rings = std::min(layout.slots, cpus);
  layout.data_size = options.ring_bytes;
  layout.backward = options.overwrite;
  layout.exact_length = options.exact_length;
  layout.buffer_unread = options.buffer_unread;
  if (options.force_lock || options.simulated_cpus != 0 || !restartable_sequences_work())
    layout.mode = ProducerMode::kLock;
  DWELL_ASSIGN(UserMapMemory memory, UserMapMemory::create(layout));
  Fd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake) return errno_error(errno, "cannot create an eventfd");
  std::unique_ptr<UserEventMap> map(new UserEventMap(std::move(memory), std::move(wake)));
  for (uint32_t i = 0; i < layout.rings; ++i) map->set_attached(i, false);
  return map;
}

Result<std::unique_ptr<UserEventMap>> UserEventMap::open(Fd memory, Fd wake) {
  DWELL_ASSIGN(UserMapMemory opened, UserMapMemory::open(std::move(memory)));
  if (opened.layout().mode == ProducerMode::kRestartable && !restartable_sequences_work())
    return invalid(
        "cannot use this event map: its producers use restartable sequences, which this process "
        "lacks (glibc.pthread.rseq=0?); create the map with force_lock");
  return std::unique_ptr<UserEventMap>(new UserEventMap(std::move(opened), std::move(wake)));
}

UserEventMap::UserEventMap(UserMapMemory memory, Fd wake)
    : memory_(std::move(memory)),
      wake_(std::move(wake)),
      fence_self_(!register_producer_for_fences()) {}

// -- output --------------------------------------------------------------------------------------

inline uint32_t UserEventMap::current_cpu() const noexcept {
  if (memory_.layout().mode == ProducerMode::kRestartable) return restartable_cpu();
  const int cpu = sched_getcpu();
  return cpu < 0 ? 0 : static_cast<uint32_t>(cpu);
}

namespace {

// What `flags` append of the context's data; 0 or minus an errno.
int choose_capture(uint64_t flags, const DataContext& context,
                   std::span<const std::byte>& capture) noexcept {
  if ((flags & ring::kReservedFlags) != 0) return -EINVAL;
  const uint64_t length = (flags & ring::kCaptureMask) >> ring::kCaptureShift;
  if (length == 0) return 0;
  const bool sound = context.data != nullptr && context.data_end >= context.data;
  const uint64_t available =
      sound ? static_cast<uint64_t>(context.data_end - context.data) : uint64_t{0};
  if (length > available) return -EFAULT;
  capture = {context.data, length};
  return 0;
}

}  // namespace

int UserEventMap::output(uint64_t flags, std::span<const std::byte> data) noexcept {
  if ((flags & ~ring::kIndexMask) != 0) return -EINVAL;
  // The hot path of the library: one try in line, without a call.
  const int result = try_output(current_cpu(), flags, data, {});
  return result != kMovedAway ? result : output_checked(flags, data, {});
}

int UserEventMap::output(uint64_t flags, std::span<const std::byte> data,
                         const DataContext& context) noexcept {
  std::span<const std::byte> capture;
  if (const int refused = choose_capture(flags, context, capture); refused != 0) return refused;
  return output_checked(flags, data, capture);
}

int UserEventMap::output_on(uint32_t cpu, uint64_t flags,
                            std::span<const std::byte> data) noexcept {
  if ((flags & ~ring::kIndexMask) != 0) return -EINVAL;
  return output_once(cpu, flags, data, {});
}

int UserEventMap::output_on(uint32_t cpu, uint64_t flags, std::span<const std::byte> data,
                            const DataContext& context) noexcept {
  std::span<const std::byte> capture;
  if (const int refused = choose_capture(flags, context, capture); refused != 0) return refused;
  return output_once(cpu, flags, data, capture);
}

int UserEventMap::output_checked(uint64_t flags, std::span<const std::byte> data,
                                 std::span<const std::byte> capture) noexcept {
  for (int moves = 0; moves < kMostRestarts; ++moves) {
    const int result = output_once(current_cpu(), flags, data, capture);
    if (result != kMovedAway) [[likely]]
      return result;
  }
  return -EBUSY;
}

int UserEventMap::output_once(uint32_t cpu, uint64_t flags, std::span<const std::byte> data,
                              std::span<const std::byte> capture) noexcept {
  return try_output(cpu, flags, data, capture);
}

// One try. kMovedAway: this thread came to another CPU, whose slot and gate count now.
inline int UserEventMap::try_output(uint32_t cpu, uint64_t flags, std::span<const std::byte> data,
                                    std::span<const std::byte> capture) noexcept {
  const bool any_cpu = (flags & ring::kIndexMask) == ring::kCurrentCpu;
  const uint32_t index = any_cpu ? cpu : static_cast<uint32_t>(flags & ring::kIndexMask);
  if (index >= slots()) return -E2BIG;
  if (index >= rings()) return -ENOENT;  // a slot beyond the last possible CPU
  const RingMemory& ring = memory_.ring(index);
  const uint32_t gate = __atomic_load_n(&extension_of(ring).gate, __ATOMIC_ACQUIRE);
  if ((gate & ring::kGateEmpty) != 0) return -ENOENT;
  if (index != cpu) return -EOPNOTSUPP;
  if (gate != 0) [[unlikely]]
    return refuse(index, gate);
  if (data.size() > ring::kMaxPayload || capture.size() > ring::kMaxPayload - data.size())
      [[unlikely]] {
    __atomic_fetch_add(&extension_of(ring).drop_too_big, 1, __ATOMIC_RELAXED);
    return -E2BIG;
  }
  if (memory_.layout().mode == ProducerMode::kLock) return put_locked(index, data, capture);
  return put_restartable(index, any_cpu, data, capture);
}

int UserEventMap::refuse(uint32_t index, uint32_t gate) noexcept {
  if ((gate & ring::kGateDisabled) != 0) return -EOPNOTSUPP;
  if ((gate & ring::kGateUnattached) != 0) return -ENOSPC;
  return lose(index);
}

int UserEventMap::lose(uint32_t index) noexcept {
  __atomic_fetch_add(&extension_of(memory_.ring(index)).lost_total, 1, __ATOMIC_RELAXED);
  wake_if_armed(index, true);
  return -ENOSPC;
}

int UserEventMap::busy(uint32_t index) noexcept {
  __atomic_fetch_add(&extension_of(memory_.ring(index)).drop_busy, 1, __ATOMIC_RELAXED);
  return -EBUSY;
}

namespace {

// Announces how far below head this producer may be writing, before it does.
void announce_size(ring::MetaExtension& extension, uint64_t record_bytes) {
  uint64_t seen = __atomic_load_n(&extension.largest_record, __ATOMIC_RELAXED);
  while (seen < record_bytes &&
         !__atomic_compare_exchange_n(&extension.largest_record, &seen, record_bytes, false,
                                      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
}

void prepare_backward(const RingMemory& ring, PreparedPut& put) {
  announce_size(ring.meta->extension, put.record_bytes);
  put.head = __atomic_load_n(&ring.meta->data_head, __ATOMIC_RELAXED);
  put.lost_total = __atomic_load_n(&ring.meta->extension.lost_total, __ATOMIC_RELAXED);
  put.next_head = put.head - put.record_bytes;
  put.record = ring.data + (put.next_head & (ring.data_size - 1));
}

void prepare_forward(const RingMemory& ring, const Placement& p, PreparedPut& put) {
  put.head = p.head;
  put.lost_total = p.lost_total;
  put.next_head = p.next_head;
  put.record = ring.data + (p.sample & (ring.data_size - 1));
}

void prepare_report(const RingMemory& ring, const Placement& p, uint32_t index, PutExtras& extras) {
  const bool told = p.kind == Placement::Kind::kWithLost;
  const LostBytes lost = lost_bytes(index, p.lost_total - p.reported);
  extras.report = p.kind == Placement::Kind::kPlain ? 0 : told ? 1 : 2;
  extras.reported = p.reported;
  extras.report_next = told ? p.lost_total : p.reported;
  extras.report_head = told ? p.next_head : p.head;
  extras.lost_header = lost.header;
  extras.lost_id = lost.id;
  extras.lost_count = lost.lost;
  extras.lost_record = ring.data + (p.head & (ring.data_size - 1));
}

PreparedPut begin_put(const RingMemory& ring, const SamplePlan& plan,
                      std::span<const std::byte> data) {
  PreparedPut put = {};
  put.meta = ring.meta;
  put.record_bytes = plan.record_bytes;
  put.header = plan.header;
  put.data = data.data();
  put.data_size = data.size();
  return put;
}

}  // namespace

// In line one try at what is most common: no loss to tell, nothing captured, undisturbed.
inline int UserEventMap::put_restartable(uint32_t index, bool any_cpu,
                                         std::span<const std::byte> data,
                                         std::span<const std::byte> capture) noexcept {
  const UserMapLayout& layout = memory_.layout();
  if (!layout.backward && capture.empty()) [[likely]] {
    const SamplePlan plan = plan_sample(data.size(), layout.exact_length);
    const RingMemory& ring = memory_.ring(index);
    const Placement p = place_sample(*ring.meta, ring.data_size, plan.record_bytes);
    PreparedPut put = begin_put(ring, plan, data);
    prepare_forward(ring, p, put);
    if (p.kind == Placement::Kind::kPlain && restartable_put(index, put) == PutStep::kDone)
        [[likely]] {
      wake_if_armed(index, false);
      return 0;
    }
  }
  return put_until_done(index, any_cpu, data, capture);
}

int UserEventMap::put_until_done(uint32_t index, bool any_cpu, std::span<const std::byte> data,
                                 std::span<const std::byte> capture) noexcept {
  const RingMemory& ring = memory_.ring(index);
  const SamplePlan plan = plan_sample(data.size() + capture.size(), memory_.layout().exact_length);
  if (plan.record_bytes > ring::usable_bytes(ring.data_size)) return lose(index);
  PreparedPut put = begin_put(ring, plan, data);
  PutExtras extras = {};
  extras.capture = capture.data();
  extras.capture_size = capture.size();
  put.extras = &extras;
  for (int restarts = 0; restarts < kMostRestarts; ++restarts) {
    if (memory_.layout().backward) {
      prepare_backward(ring, put);
    } else {
      const Placement p = place_sample(*ring.meta, ring.data_size, put.record_bytes);
      if (p.kind == Placement::Kind::kFull) return lose(index);
      prepare_forward(ring, p, put);
      prepare_report(ring, p, index, extras);
    }
    const PutStep step = restartable_put(index, put);
    if (step == PutStep::kDone) [[likely]] {
      wake_if_armed(index, false);
      return 0;
    }
    if (step == PutStep::kMoved) return any_cpu ? kMovedAway : -EOPNOTSUPP;
  }
  return busy(index);
}

int UserEventMap::put_locked(uint32_t index, std::span<const std::byte> data,
                             std::span<const std::byte> capture) noexcept {
  const RingMemory& ring = memory_.ring(index);
  const WriterOptions options{memory_.layout().backward, memory_.layout().exact_length, index};
  uint64_t& lock = extension_of(ring).lock;
  if (take_ring_lock(lock) == LockOutcome::kBusy) return busy(index);
  const PutOutcome outcome = RingWriter(ring, options).put(data, capture);
  release_ring_lock(lock);
  wake_if_armed(index, outcome == PutOutcome::kFull);
  return outcome == PutOutcome::kWritten ? 0 : outcome == PutOutcome::kFull ? -ENOSPC : -E2BIG;
}

inline void UserEventMap::wake_if_armed(uint32_t index, bool full) noexcept {
  ring::MetaExtension& extension = extension_of(memory_.ring(index));
  // Head is stored, armed is loaded: the reader's membarrier orders the two, or else we do.
  if (fence_self_) [[unlikely]]
    std::atomic_thread_fence(std::memory_order_seq_cst);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (__atomic_load_n(&extension.armed, __ATOMIC_RELAXED) != 0) [[unlikely]]
    wake(index, full);
}

void UserEventMap::wake(uint32_t index, bool full) noexcept {
  ring::MetaExtension& extension = extension_of(memory_.ring(index));
  const uint64_t head = __atomic_load_n(&memory_.ring(index).meta->data_head, __ATOMIC_RELAXED);
  const uint64_t unread = head - __atomic_load_n(&extension.wake_base, __ATOMIC_ACQUIRE);
  if (!full && unread <= __atomic_load_n(&extension.wake_watermark, __ATOMIC_RELAXED)) return;
  if (__atomic_exchange_n(&extension.armed, 0, __ATOMIC_SEQ_CST) == 0) return;  // another woke it
  const int saved = errno;  // a signal handler may be running
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(wake_.get(), &one, sizeof one);
  errno = saved;
}

// -- map operations ------------------------------------------------------------------------------

int UserEventMap::change_gate(uint32_t index, uint32_t bit, bool set) {
  if (index >= slots()) return -E2BIG;
  if (index >= rings()) return -ENOENT;
  uint32_t& gate = extension_of(memory_.ring(index)).gate;
  const uint32_t before = set ? __atomic_fetch_or(&gate, bit, __ATOMIC_SEQ_CST)
                              : __atomic_fetch_and(&gate, ~bit, __ATOMIC_SEQ_CST);
  return (before & bit) != 0 ? 1 : 0;
}

int UserEventMap::lookup(uint32_t) const { return -kNotSupported; }
int UserEventMap::push() const { return -EOPNOTSUPP; }

int UserEventMap::set_slot(uint32_t index) {
  return std::min(change_gate(index, ring::kGateEmpty, false), 0);
}

int UserEventMap::clear_slot(uint32_t index) {
  const int was_empty = change_gate(index, ring::kGateEmpty, true);
  return was_empty == 1 ? -ENOENT : was_empty;
}

int UserEventMap::set_enabled(uint32_t index, bool enabled) {
  return std::min(change_gate(index, ring::kGateDisabled, !enabled), 0);
}

int UserEventMap::set_paused(uint32_t index, bool paused) {
  return std::min(change_gate(index, ring::kGatePaused, paused), 0);
}

void UserEventMap::set_attached(uint32_t index, bool attached) {
  if (!memory_.layout().buffer_unread) change_gate(index, ring::kGateUnattached, !attached);
}

// As an array's: after the last key there is none, and after none comes the first.
int UserEventMap::next_key(const uint32_t* key, uint32_t& next) const {
  if (key == nullptr || *key >= slots()) {
    next = 0;
    return 0;
  }
  if (*key == slots() - 1) return -ENOENT;
  next = *key + 1;
  return 0;
}

UserRingCounts UserEventMap::counts(uint32_t index) const {
  if (index >= rings()) return {};
  const ring::MetaExtension& e = extension_of(memory_.ring(index));
  return {__atomic_load_n(&e.lost_total, __ATOMIC_RELAXED),
          __atomic_load_n(&e.drop_too_big, __ATOMIC_RELAXED),
          __atomic_load_n(&e.drop_busy, __ATOMIC_RELAXED)};
}

}  // namespace v0
}  // namespace dwell
