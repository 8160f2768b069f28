// The finished recording as a value: what was measured, with names. Built once (src/cli/record.cc
// through ProfileBuilder), written to and read from a .dwell file, and turned into every output by
// src/export.
//
// All times are nanoseconds of CLOCK_MONOTONIC unless a name says otherwise. Cross references are
// indexes into the vectors of this struct and always valid: the reader of .dwell files checks them.
// Strings come from other processes: bytes, possibly neither UTF-8 nor harmless. Exporters escape.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/frame.h"

namespace dwell {

using StringId = uint32_t;  // into Profile::strings; 0 is ""

constexpr int kHistogramBuckets = 32;
constexpr int kHistogramShift =
    5;  // bucket b: [2^(b+5), 2^(b+6)) ns; first and last bucket collect the rest

struct Module {
  StringId path =
      0;  // as the process sees it, or "[vdso]", "[kernel]", "[anon]", a kernel module's name
  StringId build_id = 0;  // lowercase hex, "" if none
  ModuleKind kind = ModuleKind::kUnknown;
};

struct Frame {
  StringId function = 0;  // demangled; "" if Resolution::kNone
  StringId symbol = 0;    // as in the symbol table; "" if equal to `function`
  uint32_t module = 0;    // into Profile::modules
  uint64_t address =
      0;  // ELF virtual address in the module, or the raw address where no module is known
  uint64_t offset = 0;  // of the address in the function, bytes
  Resolution how = Resolution::kNone;
  FrameKind kind = FrameKind::kUser;
  bool inlined = false;  // the compiler put the function into its caller, the next frame
  // Of Python functions; of others only where `dwell report` looked them up
  // (src/cli/source_lines.h), like `inlined`: no file holds those.
  uint32_t line = 0;  // 0: unknown
  StringId file = 0;  // path of the source as the compiler noted it
};

// Why the walk of a user stack went no further (docs/losses.md, walk_*). Behind the first the order
// of enum dwell_walk_end in abi/off_cpu.h; values stand in .dwell files.
enum class WalkEnd : uint8_t {
  kNotWalked,  // no user stack; or not known: recorded by an older dwell
  kRoot,
  kRootZero,
  kRootPointer,
  kTruncated,
  kNoTables,
  kNoMapping,
  kBadPointer,
  kUnsupported,
  kRulesFull,
  kRegisterLost,
  kFault,
  kBadStack,
  kBadIp,
  kCompat,
};
constexpr size_t kWalkEndCount = 15;
const char* walk_end_name(WalkEnd end);  // "root", "no-mapping", ... stable
inline bool is_root(WalkEnd end) { return end >= WalkEnd::kRoot && end <= WalkEnd::kRootPointer; }

// A user frame that the walk itself came to: inlined functions were found in it afterwards, and
// Python's frames beside it.
inline bool is_walked(const Frame& frame) {
  return frame.kind == FrameKind::kUser && !frame.inlined && frame.how != Resolution::kPython;
}

// How the user part of a stack was walked.
struct Walk {
  WalkEnd end = WalkEnd::kNotWalked;
  // Bit i: the step from the i-th is_walked() frame, leaf first, to its caller followed the
  // pointer; else unwind data. From the last frame there was a step only if the stack is whole.
  std::array<uint64_t, 2> pointer_steps{};

  bool followed_pointer(size_t user_frame) const {
    return user_frame < 128 && (pointer_steps[user_frame / 64] >> (user_frame % 64) & 1) != 0;
  }
  bool operator==(const Walk&) const = default;
};

struct Stack {
  std::vector<uint32_t>
      frames;                  // into Profile::frames, leaf first: kernel frames, then user frames
  bool user_complete = false;  // the user part reached a root frame
  bool truncated = false;      // root frames are missing: deeper than the limit
  Walk walk;
};

struct Process {
  uint32_t pid = 0;
  uint32_t parent_pid = 0;
  uint32_t exec_id = 0;
  uint64_t start_boottime_ns = 0;
  StringId comm = 0;        // name of the first thread
  StringId executable = 0;  // path, "" if unknown
  StringId command_line = 0;
};

// The books of one thread. running + run_queue + blocked + censored_* + lost == alive, to the
// nanosecond, or `residual_ns()` says by how much not.
struct ThreadTimes {
  uint64_t alive_ns = 0;
  uint64_t running_ns = 0;
  uint64_t run_queue_ns = 0;
  uint64_t blocked_ns = 0;
  uint64_t censored_run_queue_ns = 0;
  uint64_t censored_blocked_ns = 0;
  uint64_t lost_ns = 0;      // alive, but the probe had no state
  uint64_t filtered_ns = 0;  // part of the above that a filter kept out of the rows
  uint64_t overflow_ns = 0;  // part of the above charged to the overflow rows
  uint64_t intervals = 0;
  uint64_t blocked_intervals = 0;
  uint64_t filtered_intervals = 0;
  uint64_t overflow_intervals = 0;

  uint64_t off_cpu_ns() const {
    return run_queue_ns + blocked_ns + censored_run_queue_ns + censored_blocked_ns;
  }
  int64_t residual_ns() const {
    return static_cast<int64_t>(alive_ns - running_ns - off_cpu_ns() - lost_ns);
  }
};

// The kernel's own account of the same thread between two readings of /proc/PID/task/TID/schedstat,
// one before the window and one after it.
struct SchedstatDelta {
  uint64_t on_cpu_ns = 0;
  uint64_t run_queue_ns = 0;
  uint64_t stretch_ns = 0;  // from the first reading to the last: the window and a little more

  // How far `theirs` is from `ours`, in ns, but for what may have happened outside the window, of
  // which the thread was alive for `alive_ns`.
  uint64_t unexplained_ns(uint64_t ours, uint64_t theirs, uint64_t alive_ns) const {
    if (ours >= theirs) return ours - theirs;
    const uint64_t outside = stretch_ns > alive_ns ? stretch_ns - alive_ns : 0;
    return theirs - ours > outside ? theirs - ours - outside : 0;
  }
};

enum class ThreadEnd : uint8_t { kAlive, kExited, kExecuted, kRenamed };

struct Thread {
  uint32_t process = 0;  // into Profile::processes
  uint32_t tid = 0;
  uint64_t start_boottime_ns = 0;
  uint64_t birth_ns = 0;  // start of this life inside the window
  uint64_t end_ns = 0;
  StringId comm = 0;
  ThreadEnd end = ThreadEnd::kAlive;
  bool kernel_thread = false;
  bool folded = false;  // stands for many threads whose own records did not fit; tid is 0
  uint32_t folded_count = 0;
  ThreadTimes times;
  std::optional<SchedstatDelta> schedstat;
};

enum class WaitClass : uint8_t {  // same order as enum dwell_class in abi/off_cpu.h
  kNone,
  kInterruptible,
  kIo,
  kUninterruptible,
  kKillable,
  kIdleKthread,
  kStopped,
  kTraced,
  kParked,
  kFrozen,
  kRtlock,
  kOther,
  kPreempted,
  kPreemptedKernel,
  kYielded,
  kSignal,
  kNew,
  kRunnable,
};
constexpr int kWaitClassCount = 18;
const char* wait_class_name(
    WaitClass wait_class);  // "interruptible", "io", ... stable, used in every output
bool is_blocked_class(WaitClass wait_class);

// One row: the intervals of one thread with one class, cause and stack.
struct Row {
  uint32_t thread = 0;  // into Profile::threads
  uint32_t stack = 0;   // into Profile::stacks
  StringId cause = 0;   // "futex", "page fault", "preempted", ...
  WaitClass wait_class = WaitClass::kNone;
  uint32_t state = 0;           // raw task state
  bool censored_left = false;   // began before the window
  bool censored_right = false;  // went on after it
  bool overflow = false;        // what fell over the edge of a full map, for the whole recording
  uint64_t count = 0;
  uint64_t blocked_ns = 0;
  uint64_t run_queue_ns = 0;
  uint64_t max_ns = 0;
  std::array<uint32_t, kHistogramBuckets> histogram{};

  uint64_t total_ns() const { return blocked_ns + run_queue_ns; }
};

// One off-CPU interval of `record --timeline`, cut to the window.
struct Interval {
  uint32_t thread = 0;  // into Profile::threads
  uint32_t stack = 0;   // into Profile::stacks
  StringId cause = 0;
  WaitClass wait_class = WaitClass::kNone;
  bool censored_left = false;
  bool censored_right = false;
  uint32_t state = 0;
  uint32_t cpu = 0;  // on which it ended
  uint64_t start_ns = 0;
  uint64_t blocked_ns = 0;    // from the start until it was woken,
  uint64_t run_queue_ns = 0;  // and from then until it ran

  uint64_t end_ns() const { return start_ns + blocked_ns + run_queue_ns; }
};

// A counter of C.13: what was lost, degraded or left out. Present even when zero.
struct Loss {
  std::string name;     // "rows_full": stable, documented in docs/losses.md
  std::string meaning;  // one sentence, with the option that helps
  uint64_t count = 0;
  std::optional<uint64_t> ns;  // where the time is known
  bool is_loss = false;        // false: information only
};

struct Window {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint64_t start_unix_ns = 0;  // the same moments on the wall clock
  uint64_t end_unix_ns = 0;

  uint64_t length_ns() const { return end_ns - start_ns; }
};

// Objects whose frames got no name, why, and the one remedy.
struct UnresolvedModule {
  uint32_t module = 0;
  uint64_t frames = 0;
  std::string reason;
  std::string remedy;
};

struct Profile {
  std::string dwell_version;
  std::string host;
  std::string kernel;
  uint32_t cpus = 0;
  std::string target;                // "-p 1234", "-a", "-- sleep 1", for people
  std::vector<std::string> options;  // effective limits and filters, "min=10ms"
  Window window;
  std::vector<std::string> strings{""};
  std::vector<Module> modules;
  std::vector<Frame> frames;
  std::vector<Stack> stacks;
  std::vector<Process> processes;
  std::vector<Thread> threads;
  std::vector<Row> rows;                    // sorted by total, longest first
  std::optional<uint64_t> timeline_min_ns;  // none: recorded without a timeline
  std::vector<Interval> timeline;           // by thread, then by start
  std::vector<Loss> losses;
  std::vector<UnresolvedModule> unresolved;
  std::vector<std::string> warnings;
  uint64_t kernel_memory_bytes = 0;  // of the maps
  uint64_t user_memory_bytes = 0;    // peak of the recorder
  uint64_t recorder_cpu_ns = 0;

  const std::string& text(StringId id) const { return strings[id]; }
};

// Sums over all rows and threads; every output carries these.
struct Totals {
  uint64_t intervals = 0;
  uint64_t off_cpu_ns = 0;  // of rows
  uint64_t blocked_ns = 0;
  uint64_t run_queue_ns = 0;
  ThreadTimes threads;  // sum over threads
  int64_t residual_ns = 0;
};
Totals totals(const Profile& profile);

}  // namespace dwell
