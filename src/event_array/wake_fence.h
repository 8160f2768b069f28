// The one ordering that a sleeping reader needs: a producer stores head and then loads `armed`, the
// reader stores `armed` and then loads head; one of them must see the other. The reader pays for
// both with membarrier(2), so that a producer needs no fence. Producers register for that once per
// process; a process that cannot fences itself.
#pragma once

namespace dwell {
inline namespace v0 {

// Once per process, cheap afterwards; again in a forked child. False: this process's producers must
// fence between publishing and looking at `armed`.
bool register_producer_for_fences();

// Reader: orders everything before it against every registered producer. False: not possible here,
// so that a wake-up may be missed and sleeps must be short.
bool fence_producers();

}  // namespace v0
}  // namespace dwell
