// A perf event array in user space: the same ring ABI, the same checks in the same order, the same
// error numbers as bpf_perf_event_output, for native code in threads, signal handlers and several
// processes. UserEventArray reads it.
//
// output() makes no syscall unless a reader sleeps, and is async-signal-safe. A producer that is
// killed anywhere leaves sound rings. A reader that scribbles on the tail makes outputs fail, no
// more. docs/ring-abi.md lists where it is better than the kernel.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "base/fd.h"
#include "base/result.h"
#include "event_array/ring_sizes.h"
#include "event_array/user_map_memory.h"

namespace dwell {
inline namespace v0 {

struct UserEventMapOptions {
  // Of each ring: a power of two and at least a page, or EINVAL. Nothing is rounded here, because a
  // map's definition is exact.
  uint64_t ring_bytes = kDefaultRingBytes;
  uint32_t max_entries = 0;    // 0: as many as there are possible CPUs
  bool overwrite = false;      // backward rings
  bool exact_length = true;    // padding count in header.misc; false: the kernel's very bytes
  bool buffer_unread = false;  // keep outputs though no reader is attached (else -ENOSPC)
  bool force_lock = false;     // do not use rseq though it works
  // Not 0: rings for so many pretended CPUs. Producers say where they are, with output_on alone,
  // and lock.
  uint32_t simulated_cpus = 0;
};

// The context of a program that sees a packet or any other bytes with an end.
struct DataContext {
  const std::byte* data = nullptr;
  const std::byte* data_end = nullptr;
};

struct UserRingCounts {
  uint64_t lost = 0;          // refused for want of space
  uint64_t drop_too_big = 0;  // payload above ring::kMaxPayload
  uint64_t drop_busy = 0;
};

class UserEventMap {
 public:
  static Result<std::unique_ptr<UserEventMap>> create(const UserEventMapOptions& options = {});
  // From descriptors that another process sent; takes them over. Memory that is not sound is
  // refused.
  static Result<std::unique_ptr<UserEventMap>> open(Fd memory, Fd wake);
  // Both descriptors over a Unix socket, and from one.
  Status send(int socket) const;
  static Result<std::unique_ptr<UserEventMap>> receive(int socket);
  // The same map once more in this process.
  Result<std::unique_ptr<UserEventMap>> duplicate() const;

  // 0, or minus an errno; `flags` as bpf_perf_event_output has them. From a tracing context: flags
  // above the index are -EINVAL.
  int output(uint64_t flags, std::span<const std::byte> data) noexcept;
  // From a context with data: bits 32 to 51 of `flags` append so many bytes of it.
  int output(uint64_t flags, std::span<const std::byte> data, const DataContext& context) noexcept;
  // The same on a pretended CPU; for maps with simulated_cpus.
  int output_on(uint32_t cpu, uint64_t flags, std::span<const std::byte> data) noexcept;
  int output_on(uint32_t cpu, uint64_t flags, std::span<const std::byte> data,
                const DataContext& context) noexcept;
  // The write of user mode: into the ring of the current CPU.
  int write(std::span<const std::byte> data) noexcept { return output(ring::kCurrentCpu, data); }

  uint32_t slots() const { return memory_.layout().slots; }
  uint32_t rings() const { return memory_.layout().rings; }
  const UserMapLayout& layout() const { return memory_.layout(); }
  const RingMemory& ring(uint32_t index) const { return memory_.ring(index); }
  UserRingCounts counts(uint32_t index) const;
  int wake_fd() const { return wake_.get(); }
  int memory_fd() const { return memory_.fd(); }

  // What the map operations of user space answer, as the kernel does: minus an errno or 0.
  int lookup(uint32_t index) const;  // -ENOTSUPP (524)
  int set_slot(uint32_t index);      // puts the CPU's ring back into its slot
  int clear_slot(uint32_t index);    // -ENOENT if it is empty, -E2BIG
  int set_enabled(uint32_t index, bool enabled);
  int set_paused(uint32_t index, bool paused);
  int next_key(const uint32_t* key, uint32_t& next) const;
  int push() const;  // -EOPNOTSUPP, as pop and peek
  int pop() const { return push(); }
  int peek() const { return push(); }

  void set_attached(uint32_t index, bool attached);  // for the reader

 private:
  UserEventMap(UserMapMemory memory, Fd wake);

  int output_checked(uint64_t flags, std::span<const std::byte> data,
                     std::span<const std::byte> capture) noexcept;
  [[gnu::always_inline]] int try_output(uint32_t cpu, uint64_t flags,
                                        std::span<const std::byte> data,
                                        std::span<const std::byte> capture) noexcept;
  int output_once(uint32_t cpu, uint64_t flags, std::span<const std::byte> data,
                  std::span<const std::byte> capture) noexcept;
  int refuse(uint32_t index, uint32_t gate) noexcept;
  [[gnu::always_inline]] int put_restartable(uint32_t index, bool any_cpu,
                                             std::span<const std::byte> data,
                                             std::span<const std::byte> capture) noexcept;
  int put_until_done(uint32_t index, bool any_cpu, std::span<const std::byte> data,
                     std::span<const std::byte> capture) noexcept;
  int put_locked(uint32_t index, std::span<const std::byte> data,
                 std::span<const std::byte> capture) noexcept;
  int lose(uint32_t index) noexcept;
  int busy(uint32_t index) noexcept;
  [[gnu::always_inline]] void wake_if_armed(uint32_t index, bool full) noexcept;
  void wake(uint32_t index, bool full) noexcept;
  uint32_t current_cpu() const noexcept;
  int change_gate(uint32_t index, uint32_t bit, bool set);

  UserMapMemory memory_;
  Fd wake_;
  bool fence_self_;  // this process could not register for the reader's fences
};

}  // namespace v0
}  // namespace dwell
