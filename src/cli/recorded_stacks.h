// The stacks of a recording: raw addresses become locations at once, while the process lives; names
// come at the end.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "collect/drain.h"
#include "probe/scheduler_code.h"
#include "profile/profile.h"
#include "symbolize/symbolizer.h"

namespace dwell::cli {

struct LocatedStack {
  std::vector<symbolize::LocationId> locations;  // leaf first
  bool complete = false;
  bool truncated = false;
  Walk walk;                    // of user stacks
  std::vector<uint8_t> begins;  // of Python stacks, per location: 1 if an eval call's leaf
  // Of a pair: the user stack, and the Python frames in it. 0: it is none.
  uint64_t native = 0, python = 0;
};

class RecordedStacks {
 public:
  // Kernel frames up to and including schedule() are cut off: taken at switch-out, they come with
  // the frames of the probe.
  void set_scheduler(probe::SchedulerCode scheduler) { scheduler_ = std::move(scheduler); }
  using ReadKernel = std::function<std::vector<uint8_t>(uint64_t address, size_t bytes)>;
  void add(const collect::RawStack& raw, symbolize::Symbolizer& symbolizer);
  // Those of Python among them, which come first: a code object may be gone in a moment.
  void add_python(std::span<const collect::RawStack> all, symbolize::Symbolizer& symbolizer);
  // What a sample of a walked kernel stack tells of the scheduler's frames below it. Where samples
  // differ, the frames next to the stack that all have are kept.
  void add_sample(const dwell_kernel_stack_sample& sample, const ReadKernel& read_kernel);
  void add_scheduler_frames(uint64_t hash, std::vector<uint64_t> frames);
  // After the last sample: gives the stacks their scheduler frames.
  void finish(symbolize::Symbolizer& symbolizer);
  const LocatedStack* find(uint64_t hash) const;  // null: it was never received
  size_t size() const { return stacks_.size(); }
  uint64_t unread_python() const { return unread_python_; }  // frames without a name

 private:
  void locate(const collect::RawStack& raw, symbolize::Symbolizer& symbolizer, LocatedStack& stack);
  void locate_python(const collect::RawStack& raw, symbolize::Symbolizer& symbolizer,
                     LocatedStack& stack);

  std::unordered_map<uint64_t, LocatedStack> stacks_;
  std::unordered_map<uint64_t, std::vector<uint64_t>> scheduler_frames_;  // by stack, leaf first
  std::unordered_map<uint64_t, std::vector<uint8_t>> calls_;  // the bytes before a walked address
  probe::SchedulerCode scheduler_;
  uint64_t unread_python_ = 0;
};

ProcessKey process_key(const dwell_process_key& raw);

}  // namespace dwell::cli
