#include "collect/loss.h"

#include <array>

namespace dwell::collect {
namespace {

constexpr CounterMeaning walk_end(dwell_walk_end end, std::string_view name,
                                  std::string_view meaning) {
  return {static_cast<dwell_counter>(int{DWELL_COUNT_WALK_END} + int{end}), name, meaning, false,
          false};
}

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
                   "user stack walks that did not reach a root frame; the walk_* counters say why",
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
    CounterMeaning{DWELL_COUNT_FRAMES_BY_ROW, "frames_by_row",
                   "steps of user stack walks that followed unwind data", false, false},
    CounterMeaning{DWELL_COUNT_FRAMES_BY_POINTER, "frames_by_pointer",
                   "steps of user stack walks that followed the frame pointer", false, false},
    CounterMeaning{DWELL_COUNT_WALK_REPEATED, "stack_walk_repeated",
                   "user stack walks not done, since registers, tables and all words of the stack "
                   "that the last one read were the same",
                   false, false},
    CounterMeaning{DWELL_COUNT_WALK_VERIFIED, "stack_walk_verified",
                   "of such walks one in 1,024 that was done, and came to the same stack", false,
                   false},
    CounterMeaning{DWELL_LOSS_WALK_MISMATCH, "stack_walk_mismatch",
                   "of such walks those that were done, and came to another stack", true, false},
    CounterMeaning{DWELL_COUNT_PYTHON, "python_stacks",
                   "waits under whose user stack Python frames were read", false, false},
    CounterMeaning{DWELL_COUNT_PYTHON_NO_THREAD, "python_no_thread",
                   "waits in Python processes of threads that Python does not know", false, false},
    CounterMeaning{DWELL_COUNT_PYTHON_CUT, "python_cut",
                   "waits of whose Python frames those at the root are missing: deeper than 127, "
                   "or in a page that is not in memory",
                   false, false},
    CounterMeaning{DWELL_COUNT_PYTHON_UNMATCHED, "python_unmatched",
                   "stacks whose calls of the interpreter are not as many as those of the Python "
                   "frames: these may stand under the wrong one",
                   false, false},
    CounterMeaning{DWELL_COUNT_PYTHON_NAMES, "python_names",
                   "Python frames whose function could not be read: its process had ended, or the "
                   "function was gone",
                   false, false},
    walk_end(
        DWELL_WALK_ROOT, "walk_root",
        "user stack walks that reached a root frame: the unwind data says that there is no caller"),
    walk_end(DWELL_WALK_ROOT_ZERO, "walk_root_zero",
             "user stack walks that reached a root frame: its return address is 0"),
    walk_end(DWELL_WALK_ROOT_POINTER, "walk_root_pointer",
             "user stack walks that reached a root frame: its frame pointer is 0"),
    walk_end(DWELL_WALK_TRUNCATED, "walk_truncated",
             "user stack walks that ended at the limit of 127 frames"),
    walk_end(DWELL_WALK_NO_TABLES, "walk_no_tables",
             "user stack walks by frame pointers alone that ended early: the process had no unwind "
             "tables yet"),
    walk_end(DWELL_WALK_NO_MAPPING, "walk_no_mapping",
             "user stack walks that came to an address in no known executable mapping"),
    walk_end(DWELL_WALK_BAD_POINTER, "walk_bad_pointer",
             "user stack walks that came to code with neither unwind data nor frame pointers"),
    walk_end(DWELL_WALK_UNSUPPORTED, "walk_unsupported",
             "user stack walks that came to unwind data that the walker does not understand"),
    walk_end(DWELL_WALK_RULES_FULL, "walk_rules_full",
             "user stack walks that came to unwind data that did not fit into the table of rules"),
    walk_end(DWELL_WALK_REGISTER_LOST, "walk_register_lost",
             "user stack walks that needed a register that was not known in that frame"),
    walk_end(DWELL_WALK_FAULT, "walk_fault",
             "user stack walks that came to a page of the stack that is not in memory"),
    walk_end(DWELL_WALK_BAD_STACK, "walk_bad_stack",
             "user stack walks whose next frame would not lie above the last"),
    walk_end(DWELL_WALK_BAD_IP, "walk_bad_ip",
             "user stack walks that came to an address that no user code has"),
    walk_end(DWELL_WALK_COMPAT, "walk_compat",
             "user stacks of 32-bit code: only the leaf is taken"),
};
static_assert(kMeanings.size() == DWELL_COUNTER_COUNT, "every counter has a meaning");

}  // namespace

std::span<const CounterMeaning> counter_meanings() { return kMeanings; }

}  // namespace dwell::collect
