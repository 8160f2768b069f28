// Perf event array: outputs of programs go into a UserEventMap with a ring for each CPU of the
// machine, to be read by a UserEventArray. Counters, which other perf event arrays hold for
// bpf_perf_event_read_value, are set by whoever simulates.
#pragma once

#include <linux/bpf.h>

#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "event_array/user_event_map.h"
#include "runtime/map.h"

namespace dwell::runtime {

class EventMap final : public Map {
 public:
  static Result<std::unique_ptr<EventMap>> create(MapDefinition definition, Machine& machine);

  // For UserEventArray::open.
  UserEventMap& events() { return *events_; }

  void set_counter(uint32_t index, const bpf_perf_event_value& value);

  // bpf_perf_event_output from a program with no data in its context, and with.
  long output(Cpu& cpu, uint64_t flags, std::span<const std::byte> data);
  long output(Cpu& cpu, uint64_t flags, std::span<const std::byte> data,
              const DataContext& context);
  long read_counter(const Cpu& cpu, uint64_t flags, bpf_perf_event_value& value);

 private:
  EventMap(MapDefinition definition, Machine& machine, std::unique_ptr<UserEventMap> events);

  Machine& machine_;
  std::unique_ptr<UserEventMap> events_;
  std::mutex counters_mutex_;
  std::map<uint32_t, bpf_perf_event_value> counters_;
};

}  // namespace dwell::runtime
