// The producer's commit: copies a record into free space and publishes it with one store, inside a
// restartable sequence (rseq(2)). Preemption, migration and signals restart it, so that no other
// code of this CPU runs between the check of the head and its store: no atomics, no lock, and
// whoever is killed inside has published nothing. Safe in signal handlers and across processes.
//
// Everything that is computed from a snapshot of head and loss is computed before; the sequence
// only checks that the snapshot still holds.
#pragma once

#include <cstdint>

#include "event_array/prepared_put.h"

namespace dwell {
inline namespace v0 {

// Whether this process can run restartable sequences: the C library registered rseq with the
// kernel (glibc 2.35; its tunable glibc.pthread.rseq=0 turns it off) and a trial succeeded.
bool restartable_sequences_work();

// The CPU that this thread runs on, by rseq. Only if restartable_sequences_work().
uint32_t restartable_cpu();

PutStep restartable_put(uint32_t cpu, const PreparedPut& put);

}  // namespace v0
}  // namespace dwell

#if defined(__x86_64__)
#include "event_array/restartable_put_x86.h"
#else  // other architectures use the lock

namespace dwell {
inline namespace v0 {

inline uint32_t restartable_cpu() { return 0; }
inline PutStep restartable_put(uint32_t, const PreparedPut&) { return PutStep::kMoved; }

}  // namespace v0
}  // namespace dwell

#endif
