#include "event_array/user_map_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "event_array/cpu_list.h"
#include "event_array/ring_sizes.h"

namespace dwell {
inline namespace v0 {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

uint64_t meta_bytes() {
  return std::max<uint64_t>(4096, static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
}

UserMapHeader header_of(const UserMapLayout& layout) {
  UserMapHeader header = {};
  header.magic = UserMapHeader::kMagic;
  header.version = UserMapHeader::kVersion;
  header.header_size = sizeof header;
  if (layout.backward) header.incompatible |= UserMapHeader::kBackward;
  if (layout.mode == ProducerMode::kLock) header.incompatible |= UserMapHeader::kLockMode;
  if (!layout.exact_length) header.compatible |= UserMapHeader::kPaddedLengths;
  if (layout.buffer_unread) header.compatible |= UserMapHeader::kBufferUnread;
  header.rings = layout.rings;
  header.slots = layout.slots;
  header.data_size = layout.data_size;
  header.meta_size = layout.meta_size;
  header.creator_pid = static_cast<uint64_t>(getpid());
  return header;
}

std::unexpected<Error> refuse(std::string why) {
  auto error = usage_error("cannot use the descriptor as an event map: " + std::move(why));
  error.error().code = EINVAL;
  return error;
}

Result<UserMapLayout> layout_of(const UserMapHeader& header) {
  if (header.magic != UserMapHeader::kMagic) return refuse("it is none (wrong magic number)");
  if (header.version != UserMapHeader::kVersion || header.header_size != sizeof header)
    return refuse(fmt::format("it has version {}, this library knows version {}", header.version,
                              UserMapHeader::kVersion));
  if ((header.incompatible & ~UserMapHeader::kKnownBits) != 0)
    return refuse(fmt::format("it uses features unknown to this library (bits {:#x})",
                              header.incompatible & ~UserMapHeader::kKnownBits));
  if (header.rings == 0 || header.rings > kMaxCpus || header.slots < header.rings ||
      !ring::is_power_of_two(header.data_size) || header.data_size < ring::kMinDataSize ||
      header.data_size > kMaxRingBytes || header.meta_size != meta_bytes() ||
      header.data_size % static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) != 0)
    return refuse("its sizes are impossible");
  UserMapLayout layout;
  layout.rings = header.rings;
  layout.slots = header.slots;
  layout.data_size = header.data_size;
  layout.meta_size = header.meta_size;
  layout.backward = (header.incompatible & UserMapHeader::kBackward) != 0;
  layout.exact_length = (header.compatible & UserMapHeader::kPaddedLengths) == 0;
  layout.buffer_unread = (header.compatible & UserMapHeader::kBufferUnread) != 0;
  if ((header.incompatible & UserMapHeader::kLockMode) != 0) layout.mode = ProducerMode::kLock;
  return layout;
}

}  // namespace

Result<UserMapMemory> UserMapMemory::create(const UserMapLayout& asked) {
  UserMapMemory made;
  made.layout_ = asked;
  made.layout_.meta_size = meta_bytes();
  made.memory_ = Fd(memfd_create("dwell-events", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made.memory_) return errno_error(errno, "cannot create memory for an event map");
  const uint64_t size = made.layout_.file_size();
  if (ftruncate(made.memory_.get(), static_cast<off_t>(size)) != 0)
    return errno_error(errno, fmt::format("cannot size an event map to {}", format_bytes(size)));
  // Nobody can make our pages vanish under us (SIGBUS).
  if (fcntl(made.memory_.get(), F_ADD_SEALS, kSeals) != 0)
    return errno_error(errno, "cannot seal the memory of an event map");
  const UserMapHeader header = header_of(made.layout_);
  if (pwrite(made.memory_.get(), &header, sizeof header, 0) != sizeof header)
    return errno_error(errno, "cannot write the header of an event map");
  DWELL_TRY(made.map());
  for (const RingMemory& ring : made.rings_) {
    ring.meta->capabilities = 2;  // as a BPF output event: no counter, no clock to read
    ring.meta->data_offset = made.layout_.meta_size;
    ring.meta->data_size = made.layout_.data_size;
  }
  return made;
}

Result<UserMapMemory> UserMapMemory::open(Fd memory) {
  const int seals = fcntl(memory.get(), F_GET_SEALS);
  if (seals < 0) return errno_error(errno, "cannot use the descriptor as an event map");
  if ((seals & (F_SEAL_SHRINK | F_SEAL_GROW)) != (F_SEAL_SHRINK | F_SEAL_GROW))
    return refuse("its size is not sealed, so that it could vanish under us");
  UserMapHeader header = {};
  if (pread(memory.get(), &header, sizeof header, 0) != sizeof header)
    return refuse("it has no header");
  UserMapMemory opened;
  DWELL_ASSIGN(opened.layout_, layout_of(header));
  struct stat st = {};
  if (fstat(memory.get(), &st) != 0) return errno_error(errno, "cannot stat an event map");
  if (static_cast<uint64_t>(st.st_size) != opened.layout_.file_size())
    return refuse("its file has another size than its header says");
  opened.memory_ = std::move(memory);
  DWELL_TRY(opened.map());
  return opened;
}

// Reserves addresses for all rings at once, then maps each ring's pages into its place.
Status UserMapMemory::map() {
  const uint64_t stride = layout_.meta_size + 2 * layout_.data_size;
  const uint64_t total = layout_.rings * stride;
  void* at = mmap(nullptr, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    return errno_error(
        errno, fmt::format("cannot reserve {} of addresses for an event map", format_bytes(total)));
  mapping_ = Mapping(at, total);
  for (uint32_t i = 0; i < layout_.rings; ++i) DWELL_TRY(map_ring(i, mapping_.data() + i * stride));
  return {};
}

Status UserMapMemory::map_ring(uint32_t index, std::byte* at) {
  const uint64_t offset = layout_.meta_size + index * layout_.ring_stride();
  const auto map_at = [&](std::byte* address, uint64_t size, uint64_t from) {
    return mmap(address, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory_.get(),
                static_cast<off_t>(from)) != MAP_FAILED;
  };
  std::byte* data = at + layout_.meta_size;
  if (!map_at(at, layout_.ring_stride(), offset) ||
      !map_at(data + layout_.data_size, layout_.data_size, offset + layout_.meta_size))
    return errno_error(errno, fmt::format("cannot map ring {} of an event map", index));
  RingMemory ring;
  ring.meta = reinterpret_cast<ring::MetaPage*>(at);
  ring.data = data;
  ring.data_size = layout_.data_size;
  ring.mirrored = true;
  rings_.push_back(ring);
  return {};
}

}  // namespace v0
}  // namespace dwell
