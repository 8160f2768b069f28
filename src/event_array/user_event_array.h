// Reads a UserEventMap, as KernelEventArray reads a kernel map: same rings, same reader, same rules
// (event_array.h). The map is borrowed and must outlive the array. One reader at a time: a second
// one would move the same tails. A reader that died is succeeded where its tail stands.
#pragma once

#include <memory>

#include "event_array/event_array.h"
#include "event_array/user_event_map.h"

namespace dwell {
inline namespace v0 {

struct UserEventArrayOptions {
  WakeupRequest wakeup{};  // every_n_events: at the latest after so many
  WaitOptions wait{};
};

class UserEventArray final : public EventArray {
 public:
  static Result<std::unique_ptr<UserEventArray>> open(UserEventMap& map,
                                                      const UserEventArrayOptions& options = {});
  ~UserEventArray() override;

  int fd() const override { return epoll_.get(); }
  // Must be called before each sleep on fd(): producers wake only a reader that is armed.
  Result<bool> arm() override;

 private:
  UserEventArray(UserEventMap& map, const UserEventArrayOptions& options);

  Status start(const UserEventArrayOptions& options);
  Status sleep(std::chrono::nanoseconds timeout) override;
  Status release_slots() override;
  void disarm();

  UserEventMap& map_;
  uint64_t watermark_ = 0;
  bool fences_work_ = true;
  Fd epoll_;
};

}  // namespace v0
}  // namespace dwell
