// For the files calls_*.cc, which define what natively compiled programs call: functions named
// dwell_<name of the BPF helper> with C linkage, declared to the programs by shim/bpf/*.h.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/frame.h"
#include "runtime/map.h"

namespace dwell::runtime {

inline std::span<const std::byte> bytes_of(const void* data, uint64_t size) {
  return {static_cast<const std::byte*>(data), size};
}

// The map that a program passed, of the type the call is for; null if it is another. (The verifier
// would have refused the program.)
template <typename MapType>
MapType* map_as(const void* handle) {
  return dynamic_cast<MapType*>(&Map::of(handle));
}

}  // namespace dwell::runtime
