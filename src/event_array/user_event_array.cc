#include "event_array/user_event_array.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "event_array/wake_fence.h"

namespace dwell {
inline namespace v0 {
namespace {

// Without membarrier a wake-up may be missed: then nobody sleeps longer than this.
constexpr std::chrono::nanoseconds kUnfencedNap = std::chrono::milliseconds(10);

class UserRing final : public EventRing {
 public:
  static Result<std::unique_ptr<UserRing>> open(UserEventMap& map, uint32_t index) {
    std::unique_ptr<UserRing> ring(new UserRing(map, index));
    const RingMemory& memory = map.ring(index);
    if (map.layout().backward) {
      DWELL_ASSIGN(BackwardReader reader, BackwardReader::create(memory));
      ring->backward_.emplace(std::move(reader));
      return ring;
    }
    DWELL_ASSIGN(RingReader reader, RingReader::create(memory));
    ring->reader_.emplace(std::move(reader));
    return ring;
  }

  RingReader& reader() override { return *reader_; }
  RecordFormat format() const override { return {.pad_in_misc = map_.layout().exact_length}; }
  std::optional<uint64_t> exact_lost() override { return map_.counts(index_).lost; }
  Status pause(bool paused) override {
    map_.set_paused(index_, paused);
    return {};
  }
  Status snapshot(const SnapshotSink& sink) override {
    if (!backward_) return usage_error("only an overwriting ring has snapshots");
    backward_->take_snapshot(/*live=*/true);
    while (const Record* record = backward_->next())
      if (!sink(*record)) break;
    return {};
  }
  bool backward() const override { return backward_.has_value(); }
  int fd() const override { return -1; }

 private:
  UserRing(UserEventMap& map, uint32_t index) : map_(map), index_(index) {}

  UserEventMap& map_;
  uint32_t index_;
  std::optional<RingReader> reader_;
  std::optional<BackwardReader> backward_;
};

}  // namespace

Result<std::unique_ptr<UserEventArray>> UserEventArray::open(UserEventMap& map,
                                                             const UserEventArrayOptions& options) {
  std::unique_ptr<UserEventArray> array(new UserEventArray(map, options));
  DWELL_TRY(array->start(options));
  return array;
}

UserEventArray::UserEventArray(UserEventMap& map, const UserEventArrayOptions& options)
    : EventArray(map.rings(), {.pad_in_misc = map.layout().exact_length}, options.wait),
      map_(map) {}

UserEventArray::~UserEventArray() { close(); }

Status UserEventArray::start(const UserEventArrayOptions& options) {
  DWELL_TRY(create_wake_fd());
  DWELL_ASSIGN(const Wakeup wakeup, effective_wakeup(options.wakeup, map_.layout().data_size));
  watermark_ = wakeup.watermark_bytes;
  // The smallest sample has 16 bytes: with this the N-th event wakes at the latest.
  if (wakeup.every_n_events != 0) watermark_ = (wakeup.every_n_events - 1) * uint64_t{16};
  epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll_) return errno_error(errno, "cannot create an epoll descriptor");
  for (const int fd : {map_.wake_fd(), wake_fd()}) {
    epoll_event event = {};
    event.events = EPOLLIN;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
      return errno_error(errno, "cannot watch an event map");
  }
  for (uint32_t i = 0; i < slots(); ++i) {
    DWELL_ASSIGN(auto ring, UserRing::open(map_, i));
    install(i, std::move(ring));
    map_.set_attached(i, true);
  }
  return {};
}

Result<bool> UserEventArray::arm() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t n = read(map_.wake_fd(), &count, sizeof count);
  for (uint32_t i = 0; i < slots(); ++i) {
    if (map_.layout().backward) continue;
    ring::MetaExtension& extension = map_.ring(i).meta->extension;
    // The tail in memory is our own last store; good enough for a threshold.
    const uint64_t base = __atomic_load_n(&map_.ring(i).meta->data_tail, __ATOMIC_RELAXED);
    __atomic_store_n(&extension.wake_base, base, __ATOMIC_RELAXED);
    __atomic_store_n(&extension.wake_watermark, watermark_, __ATOMIC_RELAXED);
    __atomic_store_n(&extension.armed, 1, __ATOMIC_RELEASE);
  }
  fences_work_ = fence_producers();
  // Whoever published before the fence is seen here; whoever publishes after it sees `armed`.
  return !has_data() && !closed();
}

void UserEventArray::disarm() {
  for (uint32_t i = 0; i < slots(); ++i)
    __atomic_store_n(&map_.ring(i).meta->extension.armed, 0, __ATOMIC_RELAXED);
}

Status UserEventArray::sleep(std::chrono::nanoseconds timeout) {
  DWELL_ASSIGN(const bool idle, arm());
  if (idle) {
    if (!fences_work_) timeout = std::min(timeout, kUnfencedNap);
    timespec limit = {};
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(timeout);
    limit.tv_sec = seconds.count();
    limit.tv_nsec = (timeout - seconds).count();
    epoll_event event;
    const int n =
        epoll_pwait2(epoll_.get(), &event, 1, timeout == kForever ? nullptr : &limit, nullptr);
    if (n < 0) {
      const int code = errno;
      disarm();
      return errno_error(code, "cannot wait for an event map");
    }
  }
  disarm();
  return {};
}

Status UserEventArray::release_slots() {
  for (uint32_t i = 0; i < slots(); ++i) map_.set_attached(i, false);
  disarm();
  return {};
}

}  // namespace v0
}  // namespace dwell
