#include "runtime/event_map.h"

#include <cerrno>

#include "runtime/frame.h"
#include "runtime/machine.h"

namespace dwell::runtime {
namespace {

constexpr uint32_t kMostNestedOutputs = 3;

// One more output at work on this CPU, and one less.
class Nesting {
 public:
  explicit Nesting(uint32_t& level) : level_(level) { ++level_; }
  ~Nesting() { --level_; }
  bool too_deep() const { return level_ > kMostNestedOutputs; }

 private:
  uint32_t& level_;
};

}  // namespace

Result<std::unique_ptr<EventMap>> EventMap::create(MapDefinition definition, Machine& machine) {
  DWELL_ASSIGN(auto events, UserEventMap::create({.ring_bytes = definition.ring_bytes,
                                                  .max_entries = definition.max_entries,
                                                  .overwrite = definition.overwrite,
                                                  .simulated_cpus = machine.cpu_count()}));
  return std::unique_ptr<EventMap>(new EventMap(std::move(definition), machine, std::move(events)));
}

EventMap::EventMap(MapDefinition definition, Machine& machine, std::unique_ptr<UserEventMap> events)
    : Map(std::move(definition)), machine_(machine), events_(std::move(events)) {}

// As in the kernel: the levels are counted before anything is looked at.
long EventMap::output(Cpu& cpu, uint64_t flags, std::span<const std::byte> data) {
  const Nesting nesting(cpu.tracing_outputs);
  if (nesting.too_deep()) return -EBUSY;
  machine_.interrupt(InterruptPoint::kInsideOutput, cpu.id, running_program());
  return events_->output_on(cpu.id, flags, data);
}

// As in the kernel: flags and length are checked before the levels are counted.
long EventMap::output(Cpu& cpu, uint64_t flags, std::span<const std::byte> data,
                      const DataContext& context) {
  if ((flags & ring::kReservedFlags) != 0) return -EINVAL;
  const uint64_t length = (flags & ring::kCaptureMask) >> ring::kCaptureShift;
  if (length > static_cast<uint64_t>(context.data_end - context.data)) return -EFAULT;
  const Nesting nesting(cpu.data_outputs);
  if (nesting.too_deep()) return -EBUSY;
  machine_.interrupt(InterruptPoint::kInsideOutput, cpu.id, running_program());
  return events_->output_on(cpu.id, flags, data, context);
}

void EventMap::set_counter(uint32_t index, const bpf_perf_event_value& value) {
  const std::lock_guard lock(counters_mutex_);
  counters_[index] = value;
}

long EventMap::read_counter(const Cpu& cpu, uint64_t flags, bpf_perf_event_value& value) {
  if ((flags & ~ring::kIndexMask) != 0) return -EINVAL;
  const uint64_t index = flags == ring::kCurrentCpu ? cpu.id : flags;
  if (index >= definition().max_entries) return -E2BIG;
  const std::lock_guard lock(counters_mutex_);
  const auto found = counters_.find(static_cast<uint32_t>(index));
  if (found == counters_.end()) return -ENOENT;
  value = found->second;
  return 0;
}

}  // namespace dwell::runtime
