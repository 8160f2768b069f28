// Memory that programs read with the checked copies (bpf_probe_read_...). User addresses, and
// kernel addresses in the upper half, are simulated and answered by a Memory; kernel pointers in
// the lower half are addresses of this process, read so that a bad one is an error and no crash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace dwell::runtime {

class Memory {
 public:
  virtual ~Memory() = default;
  // Fills `to` from `address` on; false, and `to` is unspecified, if not all of it is there.
  virtual bool read(uint64_t address, std::span<std::byte> to) const = 0;
};

// Pieces of memory that are held as bytes.
class BytesMemory final : public Memory {
 public:
  // Pieces must not overlap.
  void add(uint64_t address, std::vector<std::byte> bytes);
  bool read(uint64_t address, std::span<std::byte> to) const override;

 private:
  struct Piece {
    uint64_t address;
    std::vector<std::byte> bytes;
  };
  std::vector<Piece> pieces_;
};

// Copies from an address of this process. False if not all of it is mapped.
bool read_own_memory(const void* from, std::span<std::byte> to);

}  // namespace dwell::runtime
