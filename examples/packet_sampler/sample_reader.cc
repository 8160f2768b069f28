#include "sample_reader.h"

#include <fmt/format.h>

#include "packet_sampler.h"

using namespace dwell;

namespace {

Verdict print_sample(const Event& event) {
  const auto front = event.as<sample>();
  if (!front || front->captured_bytes > event.payload.size() - sizeof(sample))
    return Verdict::kDropped;  // none of ours
  std::string line = fmt::format("{} bytes: ", front->packet_bytes);
  for (const std::byte byte : event.payload.subspan(sizeof(sample), front->captured_bytes))
    fmt::format_to(std::back_inserter(line), "{:02x}", std::to_integer<unsigned>(byte));
  fmt::print("{}\n", line);
  return Verdict::kContinue;
}

}  // namespace

Result<std::unique_ptr<EventSession>> print_samples(EventArray& array) {
  SessionCallbacks callbacks;
  callbacks.on_event = print_sample;
  callbacks.on_lost = [](uint32_t cpu, uint64_t lost) {
    fmt::print(stderr, "CPU {}: {} samples lost\n", cpu, lost);
  };
  callbacks.on_trouble = [](uint32_t cpu, Trouble, uint64_t) {
    fmt::print(stderr, "CPU {}: bytes that are no sample\n", cpu);
  };
  SessionOptions options;
  // One order over all CPUs where records have a time: the kernel's, if asked for.
  options.ordered = (array.format().sample_type & ring::kSampleTime) != 0;
  return EventSession::create(array, std::move(callbacks), options);
}
