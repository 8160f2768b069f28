#include "collect/loss.h"

#include <array>

namespace dwell::collect {
namespace {

constexpr std::array kMeanings = {
    CounterMeaning{DWELL_COUNT_SWITCHES, "switches", "context switches of recorded threads", false,
                   false},
    CounterMeaning{DWELL_COUNT_ROWS_INSERTED, "rows", "rows begun, over all epochs", false, false},
    CounterMeaning{DWELL_LOSS_STATE_FULL, "state_full",
                   "threads without state: the kernel had no memory for it; their time is lost "
                   "until their next life",
                   true, false},
    CounterMeaning{
        DWELL_LOSS_ROWS_FULL, "rows_full",
        "intervals charged to the overflow row because the row map was full; raise --rows", true,
        true},
    CounterMeaning{DWELL_LOSS_USER_STACKS_FULL, "user_stacks_full",
                   "user stacks that did not fit into the store: their time is under a "
                   "placeholder; raise --stacks",
                   true, false},
    CounterMeaning{DWELL_LOSS_KERNEL_STACKS_FULL, "kernel_stacks_full",
                   "kernel stacks that did not fit into the store: their time is under a "
                   "placeholder; raise --stacks",
                   true, false},
    CounterMeaning{DWELL_COUNT_STACK_RING_FULL, "stack_ring_full",
                   "stacks that had to be sent again because the ring was full; raise --stack-ring",
                   false, false},
    CounterMeaning{DWELL_LOSS_KERNEL_STACK_FAULT, "kernel_stack_fault",
                   "kernel stacks of which no frame could be read", true, false},
    CounterMeaning{DWELL_COUNT_STACK_TRUNCATED, "stack_truncated",
                   "user stacks deeper than 127 frames: their root is cut", false, false},
    CounterMeaning{DWELL_COUNT_STACK_INCOMPLETE, "stack_incomplete",
                   "user stack walks that did not reach a root frame: code without frame pointers",
                   false, false},
    CounterMeaning{
        DWELL_COUNT_MISSED_WAKEUP, "missed_wakeup",
        "blocked intervals that ended without a wake-up event: all of it is shown as blocked",
        false, true},
    CounterMeaning{DWELL_COUNT_EARLY_WAKEUP, "early_wakeup",
                   "wake-ups that came before the thread had left the CPU", false, false},
    CounterMeaning{DWELL_COUNT_CLOCK_ANOMALY, "clock_anomaly",
                   "events that a CPU's clock dated before the thread's last one: taken as of the "
                   "same time",
                   true, true},
    CounterMeaning{DWELL_COUNT_MISSED_SWITCH_IN, "missed_switch_in",
                   "returns to the CPU that the kernel did not tell: their time is worked out from "
                   "the CPU time used",
                   false, true},
    CounterMeaning{DWELL_LOSS_MISSED_SWITCH_OUT, "missed_switch_out",
                   "departures from the CPU that the kernel did not tell: the time away is lost",
                   true, true},
    CounterMeaning{DWELL_COUNT_FILTERED, "filtered", "intervals that a filter kept out of the rows",
                   false, true},
    CounterMeaning{DWELL_LOSS_THREAD_RECORDS, "thread_records",
                   "threads that ended faster than their records were read: folded into one; raise "
                   "--thread-ring",
                   true, true},
    CounterMeaning{DWELL_LOSS_TARGETS_FULL, "targets_full",
                   "children that could not be followed: too many targets", true, false},
    CounterMeaning{DWELL_COUNT_KSTACK_HIT, "kernel_stack_hit", "kernel stacks found by signature",
                   false, false},
    CounterMeaning{DWELL_COUNT_KSTACK_WALK, "kernel_stack_walk", "kernel stacks walked", false,
                   false},
    CounterMeaning{DWELL_COUNT_KSTACK_VERIFIED, "kernel_stack_verified",
                   "kernel stacks found by signature, walked as well, and equal", false, false},
    CounterMeaning{DWELL_LOSS_KSTACK_MISMATCH, "kernel_stack_mismatch",
                   "kernel stacks found by signature that a walk contradicted", true, false},
    CounterMeaning{DWELL_COUNT_TIMELINE, "timeline_intervals",
                   "intervals that were long enough for the timeline", false, true},
    CounterMeaning{DWELL_LOSS_TIMELINE_RING, "timeline_ring_full",
                   "intervals missing in the timeline because its ring was full or taken over by "
                   "another reader; their rows have them; raise --timeline-ring or its minimum",
                   true, true},
    CounterMeaning{DWELL_LOSS_TIMELINE_LIMIT, "timeline_limit",
                   "intervals beyond what the timeline keeps; their rows have them; raise "
                   "--timeline-intervals or its minimum",
                   true, true},
};
static_assert(kMeanings.size() == DWELL_COUNTER_COUNT, "every counter has a meaning");

}  // namespace

std::span<const CounterMeaning> counter_meanings() { return kMeanings; }

}  // namespace dwell::collect
