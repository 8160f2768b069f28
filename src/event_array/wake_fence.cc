#include "event_array/wake_fence.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace dwell {
inline namespace v0 {
namespace {

bool membarrier(int command) { return syscall(SYS_membarrier, command, 0, 0) == 0; }

std::atomic<bool> registered = false;

void register_now() { registered = membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED); }

}  // namespace

bool register_producer_for_fences() {
  static const bool once = [] {
    pthread_atfork(nullptr, nullptr, register_now);
    register_now();
    return true;
  }();
  return once && registered.load(std::memory_order_relaxed);
}

bool fence_producers() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) || membarrier(MEMBARRIER_CMD_GLOBAL);
}

}  // namespace v0
}  // namespace dwell
