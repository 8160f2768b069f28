// What `dwell record` can be told.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "collect/timeline.h"
#include "probe/probe.h"

namespace dwell::cli {

struct RecordOptions {
  std::vector<uint32_t> pids;
  std::vector<uint32_t> tids;
  bool all = false;
  std::vector<std::string> command;
  std::optional<uint64_t> duration_ns;
  std::string output = "dwell.dwell";
  probe::ProbeOptions probe;
  collect::TimelineLimits timeline;  // in force if probe.timeline_min_ns is set
  bool demangle = true;
  bool python = true;  // frames of CPython's interpreter
  bool quiet = false;

  std::string target_text() const;             // "-p 12,34"
  std::vector<std::string> effective() const;  // limits and filters in force, with units
};

// The raw words of the command line, turned into RecordOptions by `check`.
struct RecordWords {
  std::vector<std::string> pids, tids, classes, states, command;
  bool all = false, user_threads = false, kernel_threads = false, no_follow = false, follow = false;
  bool no_user_stacks = false, no_kernel_stacks = false, preempt_stacks = false,
       no_demangle = false, no_python = false, quiet = false, raw = false;
  std::string duration, min, max, output = "dwell.dwell";
  std::optional<std::string> timeline;
  std::string rows, stacks, stack_ring, thread_ring, timeline_ring, timeline_intervals, unwind_rows;
};

void add_record_command(CLI::App& app, RecordWords& words);
Result<RecordOptions> check(const RecordWords& words);

}  // namespace dwell::cli
