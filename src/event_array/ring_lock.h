// The lock of a ring whose producers cannot use restartable sequences: one word in shared memory
// that names its owner by thread id and start time, so that a lock left by a killed thread is taken
// over, and not mistaken for one of a new thread with the same id. Nothing needs repair then: an
// unpublished record is invisible.
// A signal handler that interrupted the owner gets "busy", as the kernel's nested output does.
// Limit: threads of other PID namespaces look dead to each other; such producers need rseq.
#pragma once

#include <cstdint>

namespace dwell {
inline namespace v0 {

enum class LockOutcome { kTaken, kBusy };

// Bounded: gives up after about half a millisecond of an owner that lives. Async-signal-safe.
LockOutcome take_ring_lock(uint64_t& word);
void release_ring_lock(uint64_t& word);

// Identity of the calling thread as it stands in the word; for tests.
uint64_t own_lock_identity();

}  // namespace v0
}  // namespace dwell
