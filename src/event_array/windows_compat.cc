#include "event_array/windows_compat.h"

#include <cerrno>

namespace dwell {
inline namespace v0 {
namespace windows {
namespace {

constexpr int kNotSupportedErrno = ENOTSUP;

Code code_of(int result) {
  switch (-result) {
    case 0:
      return Code::kSuccess;
    case ENOSPC:
      return Code::kNoMemory;
    case EOPNOTSUPP:  // another CPU's index
    case EINVAL:
    case EFAULT:
    case E2BIG:
    case ENOENT:
      return Code::kInvalidArgument;
    default:
      return Code::kFailed;
  }
}

int negated(Code code) { return -static_cast<int>(code); }

// Theirs does not look at the bits above the capture length.
constexpr uint64_t kKnownFlags = ring::kIndexMask | ring::kCaptureMask;

}  // namespace

// -- the map -------------------------------------------------------------------------------------

std::expected<std::unique_ptr<PerfEventArray>, Code> PerfEventArray::create(
    const MapDefinition& definition) {
  if (definition.key_size != 0 || definition.value_size != 0)
    return std::unexpected(Code::kInvalidArgument);
  // Their rings exist, and fill, whether or not somebody reads.
  auto map = UserEventMap::create({.ring_bytes = definition.max_entries, .buffer_unread = true});
  if (!map)
    return std::unexpected(map.error().code == EINVAL ? Code::kInvalidArgument : Code::kNoMemory);
  return std::unique_ptr<PerfEventArray>(new PerfEventArray(std::move(*map)));
}

int PerfEventArray::output(uint64_t flags, std::span<const std::byte> data) {
  if (data.empty()) return negated(Code::kInvalidArgument);
  return negated(code_of(map_->output(flags & ring::kIndexMask, data)));
}

int PerfEventArray::output_with_capture(const DataContext* context, uint64_t flags,
                                        std::span<const std::byte> data) {
  if ((flags & ring::kCaptureMask) == 0) return output(flags, data);
  if (context == nullptr || context->data == nullptr) return negated(Code::kOperationNotSupported);
  return negated(code_of(map_->output(flags & kKnownFlags, data, *context)));
}

Code PerfEventArray::write(std::span<const std::byte> data) {
  return static_cast<Code>(-output(ring::kCurrentCpu, data));
}

Code PerfEventArray::refuse(size_t key_size, size_t value_size) {
  return key_size != 0 || value_size != 0 ? Code::kInvalidArgument : Code::kOperationNotSupported;
}

Code PerfEventArray::ensure_queries() {
  if (queries_ != nullptr) return Code::kSuccess;
  auto array = UserEventArray::open(*map_, {.wakeup = {.every_n_events = 1}});
  if (!array) return Code::kNoMemory;
  auto queries = AsyncQueries::start(*map_, **array);
  if (!queries) return Code::kNoMemory;
  query_array_ = std::move(*array);
  queries_ = std::move(*queries);
  return Code::kSuccess;
}

Code PerfEventArray::async_query(uint64_t index, AsyncQueries::Done done) {
  if (index >= map_->rings()) return Code::kInvalidArgument;
  if (const Code ready = ensure_queries(); ready != Code::kSuccess) return ready;
  // Pending is what they answer, also when the callback has run by then.
  return queries_->query(static_cast<uint32_t>(index), std::move(done)) ? Code::kPending
                                                                        : Code::kInvalidArgument;
}

bool PerfEventArray::cancel(uint64_t index) {
  return queries_ != nullptr && index < map_->rings() &&
         queries_->cancel(static_cast<uint32_t>(index));
}

Code PerfEventArray::query(uint64_t index, QueryAnswer& answer) {
  if (index >= map_->rings()) return Code::kInvalidArgument;
  const auto cpu = static_cast<uint32_t>(index);
  const ring::MetaPage& meta = *map_->ring(cpu).meta;
  answer = {false, cpu, __atomic_load_n(&meta.data_head, __ATOMIC_ACQUIRE),
            __atomic_load_n(&meta.data_tail, __ATOMIC_RELAXED), map_->counts(cpu).lost};
  return Code::kSuccess;
}

Code PerfEventArray::return_buffer(uint64_t index, uint64_t consumer) {
  if (index >= map_->rings()) return Code::kInvalidArgument;
  if (const Code ready = ensure_queries(); ready != Code::kSuccess) return ready;
  const auto cpu = static_cast<uint32_t>(index);
  QueryAnswer now;
  query(index, now);
  if (consumer - now.consumer > now.producer - now.consumer) return Code::kInvalidArgument;
  uint64_t left = consumer - now.consumer;
  query_array_->drain_ring(cpu, {}, [&](const Record& record) {
    left -= std::min<uint64_t>(left, record.size);
    return left != 0;
  });
  return Code::kSuccess;
}

// -- the buffer ----------------------------------------------------------------------------------

std::expected<std::unique_ptr<PerfBuffer>, int> PerfBuffer::create(PerfEventArray& array,
                                                                   size_t page_count,
                                                                   SampleCallback sample,
                                                                   LostCallback lost,
                                                                   uint64_t flags) {
  if (!sample || !lost || page_count != 0 || (flags & ~kAutoCallback) != 0)
    return std::unexpected(EINVAL);
  std::unique_ptr<PerfBuffer> buffer(new PerfBuffer(std::move(sample), std::move(lost)));
  buffer->map_ = &array.map();
  auto opened = UserEventArray::open(array.map(), {.wakeup = {.every_n_events = 1}});
  if (!opened) return std::unexpected(ENOMEM);
  buffer->array_ = std::move(*opened);
  for (uint32_t cpu = 0; cpu < buffer->array_->slots(); ++cpu)
    buffer->lost_before_.push_back(array.map().counts(cpu).lost);
  if ((flags & kAutoCallback) != 0) buffer->thread_ = std::thread([b = buffer.get()] { b->run(); });
  return buffer;
}

PerfBuffer::~PerfBuffer() {
  array_->close();
  if (thread_.joinable()) thread_.join();
}

void PerfBuffer::run() {
  for (;;) {
    const auto result = array_->wait(kForever);
    if (!result || *result == WaitResult::kClosed) return;
    drain();
  }
}

// The loss since the last batch comes before the batch, from the exact counter: LOST records in the
// ring say the same later.
int PerfBuffer::drain_ring(uint32_t cpu) {
  const uint64_t lost = map_->counts(cpu).lost;
  if (lost != lost_before_[cpu]) {
    lost_(cpu, lost - lost_before_[cpu]);
    lost_before_[cpu] = lost;
  }
  int records = 0;
  array_->drain_ring(cpu, {}, [&](const Record& record) {
    Sample sample;
    if (!record.is_sample() || decode_sample(array_->format(), record, sample) != SampleCheck::kOk)
      return;
    ++records;
    sample_(cpu, sample.payload);
  });
  return records;
}

int PerfBuffer::drain() {
  int records = 0;
  for (uint32_t cpu = 0; cpu < array_->slots(); ++cpu) records += drain_ring(cpu);
  return records;
}

int PerfBuffer::poll(int timeout_ms) {
  if (thread_.joinable()) return -kNotSupportedErrno;
  if (const int records = drain(); records != 0 || timeout_ms == 0) return records;
  const auto timeout =
      timeout_ms < 0 ? kForever : std::chrono::nanoseconds(std::chrono::milliseconds(timeout_ms));
  const auto result = array_->wait(timeout);
  if (!result) return -result.error().code;
  return drain();
}

int PerfBuffer::consume() { return thread_.joinable() ? -kNotSupportedErrno : drain(); }

int PerfBuffer::consume_buffer(size_t index) {
  if (thread_.joinable()) return -kNotSupportedErrno;
  if (index >= buffer_count()) return -EINVAL;
  return drain_ring(static_cast<uint32_t>(index));
}

int PerfBuffer::wait_handle() {
  if (thread_.joinable()) return -1;
  (void)array_->arm();
  return array_->fd();
}

}  // namespace windows
}  // namespace v0
}  // namespace dwell
