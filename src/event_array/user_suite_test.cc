// The suite of all event arrays, on maps in user space.
#include "event_array/event_array_suite.h"
#include "event_array/restartable_put.h"
#include "event_array/user_event_array.h"

namespace dwell {
inline namespace v0 {
namespace {

template <bool kLock>
class UserHarness {
 public:
  static std::string unavailable() {
    if (kLock || restartable_sequences_work()) return "";
    return "no restartable sequences here";
  }
  explicit UserHarness(const SuiteOptions& options)
      : map_(std::move(*UserEventMap::create({.ring_bytes = options.ring_bytes,
                                              .overwrite = options.overwrite,
                                              .force_lock = kLock}))),
        array_(std::move(
            *UserEventArray::open(*map_, {.wakeup = {.watermark_bytes = options.watermark_bytes},
                                          .wait = {.sweep = options.sweep}}))) {}

  EventArray& array() { return *array_; }
  int output(uint64_t flags, uint64_t size) {
    std::vector<std::byte> payload(size);
    std::memcpy(payload.data(), &next_, std::min<size_t>(size, sizeof next_));
    ++next_;
    return map_->output(flags, payload);
  }

 private:
  std::unique_ptr<UserEventMap> map_;
  std::unique_ptr<UserEventArray> array_;
  uint64_t next_ = 0;
};

using UserHarnesses = testing::Types<UserHarness<false>, UserHarness<true>>;
INSTANTIATE_TYPED_TEST_SUITE_P(User, EventArraySuite, UserHarnesses);

}  // namespace
}  // namespace v0
}  // namespace dwell
