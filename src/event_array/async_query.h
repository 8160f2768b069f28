// "Call me when this ring has data", one outstanding question per ring, with a thread of its own.
// The ring is not drained; whoever is called does that.
// While it lives nobody else may wait() on the array or arm() it: wake-ups are for one sleeper.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "event_array/user_event_array.h"

namespace dwell {
inline namespace v0 {

struct QueryAnswer {
  bool canceled = false;  // by cancel(), or because array or query object went away
  uint32_t cpu = 0;
  uint64_t producer = 0;  // positions of the ring
  uint64_t consumer = 0;
  uint64_t lost = 0;  // outputs refused so far
};

class AsyncQueries {
 public:
  using Done = std::function<void(const QueryAnswer&)>;

  static Result<std::unique_ptr<AsyncQueries>> start(UserEventMap& map, UserEventArray& array);
  // Cancels what is outstanding, then ends the thread. Not from within a Done.
  ~AsyncQueries();

  // Calls `done` exactly once: at once and from here if the ring has data, else later from the
  // thread. EINVAL if the ring has a question already or does not exist.
  Status query(uint32_t cpu, Done done);
  // True: `done` was called with `canceled`. False: nothing was outstanding.
  bool cancel(uint32_t cpu);
  bool outstanding(uint32_t cpu) const;

 private:
  AsyncQueries(UserEventMap& map, UserEventArray& array);

  void run();
  void answer_ready();
  QueryAnswer answer_for(uint32_t cpu, bool canceled);
  Done take(uint32_t cpu);
  void poke();

  UserEventMap& map_;
  UserEventArray& array_;
  mutable std::mutex mutex_;   // guards waiting_
  std::vector<Done> waiting_;  // by CPU; empty: no question
  std::atomic<bool> ending_ = false;
  Fd poke_;
  std::thread thread_;
};

}  // namespace v0
}  // namespace dwell
