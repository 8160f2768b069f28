// Checked copies of kernel and user memory, and of packets.
#include <algorithm>
#include <cstring>

#include "runtime/calls.h"

namespace dwell::runtime {
namespace {

enum class Space { kKernel, kUser, kEither };

bool read_user(const Frame& f, const void* from, std::span<std::byte> to) {
  const Task* task = f.cpu.current;
  return task != nullptr && task->user_memory != nullptr &&
         task->user_memory->read(reinterpret_cast<uint64_t>(from), to);
}

bool read_kernel(const Frame& f, const void* from, std::span<std::byte> to) {
  const auto address = reinterpret_cast<uint64_t>(from);
  if (address >> 63 == 0) return read_own_memory(from, to);
  const Memory* memory = f.machine.kernel_memory();
  return memory != nullptr && memory->read(address, to);
}

bool read(const Frame& f, Space space, const void* from, std::span<std::byte> to) {
  switch (space) {
    case Space::kKernel:
      return read_kernel(f, from, to);
    case Space::kUser:
      return read_user(f, from, to);
    case Space::kEither:
      return read_user(f, from, to) || read_kernel(f, from, to);
  }
  return false;
}

long copy(Space space, void* to, uint32_t size, const void* from) {
  Frame& f = enter_call();
  if (read(f, space, from, {static_cast<std::byte*>(to), size})) return 0;
  std::memset(to, 0, size);
  return -EFAULT;
}

// The length with its zero byte, at most `size`; by pieces that do not cross a page for nothing.
long copy_text(Space space, void* to, uint32_t size, const void* from) {
  constexpr uint64_t kPiece = 64;
  Frame& f = enter_call();
  auto* out = static_cast<char*>(to);
  if (size == 0) return 0;
  uint32_t done = 0;
  while (done < size) {
    const uint64_t at = reinterpret_cast<uint64_t>(from) + done;
    const auto n = static_cast<uint32_t>(std::min<uint64_t>(kPiece - at % kPiece, size - done));
    if (!read(f, space, reinterpret_cast<const void*>(at),
              {reinterpret_cast<std::byte*>(out + done), n})) {
      // The text may end before what cannot be read.
      if (n == 1 || !read(f, space, reinterpret_cast<const void*>(at),
                          {reinterpret_cast<std::byte*>(out + done), 1})) {
        std::memset(to, 0, size);
        return -EFAULT;
      }
      if (out[done++] == 0) return done;
      continue;
    }
    if (const void* end = std::memchr(out + done, 0, n); end != nullptr)
      return static_cast<const char*>(end) - out + 1;
    done += n;
  }
  out[size - 1] = 0;
  return size;
}

}  // namespace

extern "C" {

long dwell_bpf_probe_read(void* to, uint32_t size, const void* from) {
  return copy(Space::kEither, to, size, from);
}
long dwell_bpf_probe_read_kernel(void* to, uint32_t size, const void* from) {
  return copy(Space::kKernel, to, size, from);
}
long dwell_bpf_probe_read_user(void* to, uint32_t size, const void* from) {
  return copy(Space::kUser, to, size, from);
}
long dwell_bpf_probe_read_str(void* to, uint32_t size, const void* from) {
  return copy_text(Space::kEither, to, size, from);
}
long dwell_bpf_probe_read_kernel_str(void* to, uint32_t size, const void* from) {
  return copy_text(Space::kKernel, to, size, from);
}
long dwell_bpf_probe_read_user_str(void* to, uint32_t size, const void* from) {
  return copy_text(Space::kUser, to, size, from);
}

long dwell_bpf_copy_from_user_task(void* to, uint32_t size, const void* from, void* task,
                                   uint64_t flags) {
  enter_call();
  if (flags != 0) return -EINVAL;
  const Memory* memory = Task::of(task).user_memory;
  if (memory != nullptr &&
      memory->read(reinterpret_cast<uint64_t>(from), {static_cast<std::byte*>(to), size}))
    return 0;
  std::memset(to, 0, size);
  return -EFAULT;
}

long dwell_bpf_skb_load_bytes(const void*, uint32_t offset, void* to, uint32_t size) {
  const DataContext* packet = enter_call().data;
  const uint64_t available =
      packet == nullptr ? 0 : static_cast<uint64_t>(packet->data_end - packet->data);
  if (offset <= available && size <= available - offset) {
    std::memcpy(to, packet->data + offset, size);
    return 0;
  }
  std::memset(to, 0, size);
  return -EFAULT;
}

}  // extern "C"

}  // namespace dwell::runtime
