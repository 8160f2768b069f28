// The shared memory of a UserEventMap: a sealed memfd with a header page and, per CPU, a metadata
// page and a data area. Each process maps it so that every data area lies twice in a row: no record
// ever wraps for us. What another process may have written is checked once, here, and never
// trusted later: sizes are copied out of the header, positions are checked by reader and writer.
#pragma once

#include <cstdint>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "event_array/mapping.h"
#include "ring/ring_reader.h"

namespace dwell {
inline namespace v0 {

// How producers keep out of each other's way; one way per map, chosen when it is created.
enum class ProducerMode : uint32_t {
  kRestartable = 0,  // rseq: no lock, safe anywhere
  kLock = 1,         // for processes without rseq
};

struct UserMapLayout {
  uint32_t rings = 0;  // ring i belongs to CPU i
  uint32_t slots = 0;  // max_entries
  uint64_t data_size = 0;
  uint64_t meta_size = 0;  // max(4096, page size)
  bool backward = false;
  bool exact_length = true;
  bool buffer_unread = false;  // outputs are kept though nobody reads
  ProducerMode mode = ProducerMode::kRestartable;

  uint64_t ring_stride() const { return meta_size + data_size; }
  uint64_t file_size() const { return meta_size + rings * ring_stride(); }
};

// The header page, written once by the creator.
struct UserMapHeader {
  static constexpr uint64_t kMagic = 0x31415645'4c575744;  // "DWWLEVA1" little endian
  static constexpr uint32_t kVersion = 1;
  // Bits of `incompatible` that this code knows; a map with others is refused.
  static constexpr uint32_t kBackward = 1;
  static constexpr uint32_t kLockMode = 2;
  static constexpr uint32_t kKnownBits = kBackward | kLockMode;
  // Bits of `compatible`: whoever does not know one may ignore it.
  static constexpr uint32_t kPaddedLengths = 1;  // misc holds no padding count
  static constexpr uint32_t kBufferUnread = 2;

  uint64_t magic;
  uint32_t version;
  uint32_t header_size;
  uint32_t incompatible;
  uint32_t compatible;
  uint32_t rings;
  uint32_t slots;
  uint64_t data_size;
  uint64_t meta_size;
  uint64_t creator_pid;
};
static_assert(sizeof(UserMapHeader) == 56);

class UserMapMemory {
 public:
  static Result<UserMapMemory> create(const UserMapLayout& layout);
  // Takes over a descriptor that came from another process; refuses what is not sound.
  static Result<UserMapMemory> open(Fd memory);

  const UserMapLayout& layout() const { return layout_; }
  const RingMemory& ring(uint32_t index) const { return rings_[index]; }
  int fd() const { return memory_.get(); }

 private:
  Status map();
  Status map_ring(uint32_t index, std::byte* at);

  Fd memory_;
  UserMapLayout layout_;
  Mapping mapping_;  // reservation that holds all rings
  std::vector<RingMemory> rings_;
};

}  // namespace v0
}  // namespace dwell
