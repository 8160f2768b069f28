#include "runtime/memory.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace dwell::runtime {

void BytesMemory::add(uint64_t address, std::vector<std::byte> bytes) {
  pieces_.push_back({address, std::move(bytes)});
}

bool BytesMemory::read(uint64_t address, std::span<std::byte> to) const {
  for (const Piece& piece : pieces_) {
    const uint64_t offset = address - piece.address;
    if (address < piece.address || offset > piece.bytes.size()) continue;
    if (to.size() > piece.bytes.size() - offset) continue;
    if (!to.empty()) std::memcpy(to.data(), piece.bytes.data() + offset, to.size());
    return true;
  }
  return false;
}

bool read_own_memory(const void* from, std::span<std::byte> to) {
  if (to.empty()) return true;
  iovec local{to.data(), to.size()}, remote{const_cast<void*>(from), to.size()};
  const ssize_t n = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  if (n >= 0) return static_cast<size_t>(n) == to.size();
  if (errno == EFAULT) return false;
  // Sandboxes refuse the call. Then a bad pointer of the program crashes, as it would in any C.
  std::memcpy(to.data(), from, to.size());
  return true;
}

}  // namespace dwell::runtime
