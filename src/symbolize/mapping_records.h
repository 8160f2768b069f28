// What a record of a mapping ring says: a fork, an exec, a new executable mapping, a BPF program.
// Pure: any bytes are acceptable input, a record that makes no sense is no event.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ring/record.h"
#include "symbolize/mappings.h"

namespace dwell::symbolize {

struct MappingEvent {
  enum class Kind : uint8_t { kFork, kExec, kMap, kProgramLoaded };
  Kind kind = Kind::kFork;
  uint64_t time_ns = 0;  // CLOCK_MONOTONIC
  uint64_t order = 0;    // of arrival, for events of one moment
  uint32_t pid = 0;
  uint32_t parent_pid = 0;  // of a fork: the process that called it
  Mapping mapping;          // of a map, but for its backing
  Backing backing;
  uint64_t address = 0;  // of a BPF program
  uint32_t bytes = 0;
  std::string name;
};

// The layout that mapping_events.cc asks the kernel for.
inline constexpr RecordFormat kMappingFormat{ring::kSampleTime, 0, true, false};

std::optional<MappingEvent> decode_mapping_record(const Record& record);

}  // namespace dwell::symbolize
