// The suite of all event arrays, on a kernel map.
#include "event_array/event_array_suite.h"
#include "event_array/generator.h"
#include "event_array/kernel_event_array.h"

namespace dwell {
inline namespace v0 {
namespace {

class KernelHarness {
 public:
  static std::string unavailable() {
    static const bool loads = Generator::load() != nullptr;
    return loads ? "" : "this kernel does not let us load BPF programs";
  }
  explicit KernelHarness(const SuiteOptions& options)
      : generator_(Generator::load()),
        array_(std::move(*KernelEventArray::open(
            generator_->map_fd(), {.size = {.bytes_per_cpu = options.ring_bytes},
                                   .wakeup = {.watermark_bytes = options.watermark_bytes},
                                   .wait = {.sweep = options.sweep},
                                   .overwrite = options.overwrite}))) {}

  EventArray& array() { return *array_; }
  int output(uint64_t flags, uint64_t size) {
    return static_cast<int>(generator_->output_counting(size, flags));
  }

 private:
  std::unique_ptr<Generator> generator_;
  std::unique_ptr<KernelEventArray> array_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Kernel, EventArraySuite, KernelHarness);

}  // namespace
}  // namespace v0
}  // namespace dwell
