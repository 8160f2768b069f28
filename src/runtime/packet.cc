#include "runtime/packet.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace dwell::runtime {
namespace {

constexpr uint64_t kLowest = 0x10000000, kHighest = 0xf0000000, kStep = 0x200000;

// A hint is enough where the place is free, on every architecture.
void* map_low(size_t bytes) {
  for (uint64_t at = kLowest; at < kHighest; at += kStep) {
    void* const hint = reinterpret_cast<void*>(at);
    void* const got = mmap(hint, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == hint) return got;
    if (got != MAP_FAILED) munmap(got, bytes);
  }
  return nullptr;
}

}  // namespace

Result<std::unique_ptr<Packet>> Packet::create(std::span<const std::byte> bytes) {
  if (bytes.size() > kMaxPacketBytes) return usage_error("a packet has at most 1 MiB");
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t mapped = (bytes.size() / page + 1) * page;
  void* const memory = map_low(mapped);
  if (memory == nullptr) return errno_error(ENOMEM, "cannot map a packet below 4 GiB");
  if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
  return std::unique_ptr<Packet>(new Packet(Mapping(memory, mapped), bytes.size()));
}

Packet::Packet(Mapping memory, size_t bytes) : memory_(std::move(memory)), bytes_(bytes) {
  const auto begin = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(memory_.data()));
  const uint32_t end = begin + static_cast<uint32_t>(bytes);
  xdp_.data = xdp_.data_meta = begin;
  xdp_.data_end = end;
  skb_.data = skb_.data_meta = begin;
  skb_.data_end = end;
  skb_.len = static_cast<uint32_t>(bytes);
}

const Packet* Packet::of(const void* pointer) {
  const auto* packet = static_cast<const Packet*>(pointer);
  return packet != nullptr && packet->magic_ == kMagic ? packet : nullptr;
}

}  // namespace dwell::runtime
