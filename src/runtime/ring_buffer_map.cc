#include "runtime/ring_buffer_map.h"

#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>

#include "base/fd.h"

namespace dwell::runtime {
namespace {

constexpr uint32_t kBusy = BPF_RINGBUF_BUSY_BIT, kDiscard = BPF_RINGBUF_DISCARD_BIT;
constexpr uint64_t kHeaderBytes = BPF_RINGBUF_HDR_SZ;
constexpr uint64_t kMaxRecordBytes = ~0u / 4;  // the kernel's RINGBUF_MAX_RECORD_SZ
constexpr uint64_t kKnownFlags = BPF_RB_NO_WAKEUP | BPF_RB_FORCE_WAKEUP;

}  // namespace

Result<std::unique_ptr<RingBufferMap>> RingBufferMap::create(MapDefinition definition) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t bytes = definition.max_entries;
  if (bytes == 0 || (bytes & (bytes - 1)) != 0 || bytes % page != 0)
    return errno_error(EINVAL, "cannot create the ring buffer " + definition.name +
                                   ": its size must be a power of two and whole pages");
  const Fd memory(memfd_create("dwell_ring_buffer", MFD_CLOEXEC));
  if (!memory || ftruncate(memory.get(), static_cast<off_t>(page + bytes)) != 0)
    return errno_error(errno, "cannot create the memory of the ring buffer " + definition.name);
  void* const at = mmap(nullptr, page + 2 * bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return errno_error(errno, "cannot map the ring buffer " + definition.name);
  Mapping mapping(at, page + 2 * bytes);
  constexpr int kProtection = PROT_READ | PROT_WRITE, kFlags = MAP_SHARED | MAP_FIXED;
  if (mmap(at, page + bytes, kProtection, kFlags, memory.get(), 0) == MAP_FAILED ||
      mmap(mapping.data() + page + bytes, bytes, kProtection, kFlags, memory.get(),
           static_cast<off_t>(page)) == MAP_FAILED)
    return errno_error(errno, "cannot map the ring buffer " + definition.name);
  return std::unique_ptr<RingBufferMap>(
      new RingBufferMap(std::move(definition), std::move(mapping), page));
}

RingBufferMap::RingBufferMap(MapDefinition definition, Mapping mapping, uint64_t page_bytes)
    : Map(std::move(definition)),
      mapping_(std::move(mapping)),
      page_bytes_(page_bytes),
      data_(mapping_.data() + page_bytes),
      mask_(this->definition().max_entries - 1) {
  RingBufferMap* self = this;
  std::memcpy(mapping_.data(), &self, sizeof self);
}

RingBufferMap::Header* RingBufferMap::header_at(uint64_t position) {
  return reinterpret_cast<Header*>(data_ + (position & mask_));
}

RingBufferMap& RingBufferMap::owner_of(const Header* header) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  const uint64_t start =
      (reinterpret_cast<uint64_t>(header) & ~(page - 1)) - uint64_t{header->pages} * page;
  RingBufferMap* owner;
  std::memcpy(&owner, reinterpret_cast<const void*>(start), sizeof owner);
  return *owner;
}

void* RingBufferMap::reserve(uint64_t bytes) {
  if (bytes > kMaxRecordBytes) return nullptr;
  const uint64_t length = round_up_8(bytes + kHeaderBytes);
  if (length > mask_ + 1) return nullptr;
  const std::lock_guard lock(lock_);
  const uint64_t consumed = consumed_.load(std::memory_order_acquire);
  const uint64_t produced = produced_.load(std::memory_order_relaxed);
  if (produced + length - consumed > mask_) return nullptr;
  Header* header = header_at(produced);
  const auto offset = static_cast<uint64_t>(reinterpret_cast<std::byte*>(header) - mapping_.data());
  header->pages = static_cast<uint32_t>(offset / page_bytes_);
  __atomic_store_n(&header->length, static_cast<uint32_t>(bytes) | kBusy, __ATOMIC_RELAXED);
  produced_.store(produced + length, std::memory_order_release);
  return header + 1;
}

void RingBufferMap::finish(void* record, bool keep, uint64_t flags) {
  Header* header = static_cast<Header*>(record) - 1;
  RingBufferMap& ring = owner_of(header);
  const uint32_t length = header->length & ~kBusy;
  const auto at = static_cast<uint64_t>(reinterpret_cast<std::byte*>(header) - ring.data_);
  __atomic_store_n(&header->length, keep ? length : length | kDiscard, __ATOMIC_SEQ_CST);
  const bool waits_for_this = (ring.consumed_.load(std::memory_order_seq_cst) & ring.mask_) == at;
  if ((flags & BPF_RB_FORCE_WAKEUP) != 0 || (waits_for_this && (flags & BPF_RB_NO_WAKEUP) == 0))
    ring.wakeups_.fetch_add(1, std::memory_order_relaxed);
}

long RingBufferMap::output(const void* data, uint64_t bytes, uint64_t flags) {
  if ((flags & ~kKnownFlags) != 0) return -EINVAL;
  void* record = reserve(bytes);
  if (record == nullptr) return -EAGAIN;
  if (bytes != 0) std::memcpy(record, data, bytes);
  finish(record, true, flags);
  return 0;
}

uint64_t RingBufferMap::query(uint64_t what) const {
  const uint64_t consumed = consumed_.load(std::memory_order_acquire);
  const uint64_t produced = produced_.load(std::memory_order_acquire);
  if (what == BPF_RB_AVAIL_DATA) return produced - consumed;
  if (what == BPF_RB_RING_SIZE) return mask_ + 1;
  if (what == BPF_RB_CONS_POS) return consumed;
  return what == BPF_RB_PROD_POS ? produced : 0;
}

uint64_t RingBufferMap::consume(const std::function<void(std::span<const std::byte>)>& take) {
  uint64_t records = 0, position = consumed_.load(std::memory_order_relaxed);
  while (position < produced_.load(std::memory_order_acquire)) {
    Header* header = header_at(position);
    const uint32_t length = __atomic_load_n(&header->length, __ATOMIC_ACQUIRE);
    if ((length & kBusy) != 0) break;
    const uint32_t bytes = length & ~kDiscard;
    if ((length & kDiscard) == 0) {
      take({reinterpret_cast<const std::byte*>(header + 1), bytes});
      ++records;
    }
    position += round_up_8(bytes + kHeaderBytes);
    consumed_.store(position, std::memory_order_seq_cst);
  }
  return records;
}

}  // namespace dwell::runtime
