#include "event_array/ring_lock.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"

namespace dwell {
inline namespace v0 {
namespace {

constexpr int kTidBits = 22;  // PID_MAX_LIMIT on 64-bit kernels
constexpr uint64_t kTidMask = (uint64_t{1} << kTidBits) - 1;
constexpr uint64_t kPatienceNs = 500'000;

// "/proc/TID/stat" without the heap: a signal handler may run this.
void stat_path(uint32_t tid, char (&path)[32]) {
  char digits[12];
  int n = 0;
  do digits[n++] = static_cast<char>('0' + tid % 10);
  while ((tid /= 10) != 0);
  char* at = path;
  for (const char* p = "/proc/"; *p != '\0';) *at++ = *p++;
  while (n > 0) *at++ = digits[--n];
  for (const char* p = "/stat"; *p != '\0';) *at++ = *p++;
  *at = '\0';
}

// Identity of a thread: its start time in ticks above its id. 0 if it is gone or a zombie.
uint64_t identity_of(uint32_t tid) {
  char path[32];
  stat_path(tid, path);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[1024];
  const ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  if (size <= 0) return 0;
  text[size] = '\0';
  // The name may hold anything, so that the fields are counted from the last parenthesis.
  const char* at = nullptr;
  for (const char* p = text; *p != '\0'; ++p)
    if (*p == ')') at = p;
  if (at == nullptr || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X') return 0;
  at += 2;  // field 3, the state; the start time is field 22
  for (int field = 3; field < 22 && *at != '\0'; ++at) field += *at == ' ';
  uint64_t ticks = 0;
  for (; *at >= '0' && *at <= '9'; ++at) ticks = ticks * 10 + static_cast<uint64_t>(*at - '0');
  return ticks << kTidBits | tid;
}

}  // namespace

uint64_t own_lock_identity() {
  // Asked for each time: after fork the child has another thread id and the same thread storage.
  static thread_local uint64_t cached = 0;
  const auto tid = static_cast<uint32_t>(syscall(SYS_gettid));
  if ((cached & kTidMask) != tid) cached = identity_of(tid);
  return cached != 0 ? cached : tid;
}

LockOutcome take_ring_lock(uint64_t& word) {
  const uint64_t me = own_lock_identity();
  uint64_t deadline = 0;
  for (;;) {
    uint64_t owner = 0;
    if (__atomic_compare_exchange_n(&word, &owner, me, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      return LockOutcome::kTaken;
    if (owner == me) return LockOutcome::kBusy;  // we are in a signal handler above the owner
    const uint64_t now = monotonic_ns();
    if (deadline == 0) deadline = now + kPatienceNs;
    if (now > deadline) {
      const auto tid = static_cast<uint32_t>(owner & kTidMask);
      if (tid != 0 && identity_of(tid) == owner) return LockOutcome::kBusy;
      // Dead. One of those who notice succeeds it.
      if (__atomic_compare_exchange_n(&word, &owner, me, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return LockOutcome::kTaken;
      return LockOutcome::kBusy;
    }
    sched_yield();
  }
}

void release_ring_lock(uint64_t& word) {
  uint64_t me = own_lock_identity();
  // Only our own: a hostile process may have written anything.
  __atomic_compare_exchange_n(&word, &me, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

}  // namespace v0
}  // namespace dwell
