// Every distinct place of code that a stack led to, numbered from 0 in the order of their first
// appearance. Called for every frame of every new stack: one vector, and one of numbers to find
// them by.
#pragma once

#include <cstdint>
#include <vector>

#include "base/frame.h"
#include "symbolize/symbolizer.h"

namespace dwell::symbolize {

struct Location {
  ObjectId object = 0;
  bool return_address = false;
  FrameKind kind = FrameKind::kUser;
  uint64_t address = 0;
  uint32_t remembered = 0;  // kernel: the name it had when it was located
  // Python: `remembered` is the function, and `address` the line.
  bool is_python = false;

  bool operator==(const Location&) const = default;
  // A return address may be the first byte of the next function: the call lies before it.
  uint64_t lookup_address() const { return address - (return_address && address > 0 ? 1 : 0); }
};

class Locations {
 public:
  static constexpr size_t kLocationsMax = 1 << 24;

  struct Interned {
    LocationId id = 0;
    bool is_new = false;
  };

  Locations();
  // Number 0 for what is new when all numbers are taken.
  Interned intern(const Location& location);
  const Location& operator[](LocationId id) const { return all_[id]; }
  size_t size() const { return all_.size(); }

 private:
  static constexpr size_t kFirstSlots = 1024;

  size_t slot_of(const Location& location) const;
  void grow();

  std::vector<Location> all_;
  std::vector<uint32_t> slots_;  // one more than a number, 0: free; two for three numbers at least
  const uint64_t seed_;          // or a target could choose addresses that share a slot
};

}  // namespace dwell::symbolize
