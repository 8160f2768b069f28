// Every output of a Profile that is a file format: one pure function each, Profile -> bytes.
//
// Invariant: all of them show the same nanoseconds. The sum of the lines of folded(), of the values
// of pprof(), of the rows of json() and of the groups of table() is totals(profile).
// Names come from other processes; each format says how it makes them harmless. Called by
// src/cli/report.cc; no state, any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"
#include "profile/profile.h"

namespace dwell {

// Which time counts.
enum class View { kOffCpu, kBlocked, kRunQueue };

// One line per distinct stack, "process;thread;root;...;leaf N", for flamegraph.pl, inferno,
// speedscope and friends. N is a whole number of nanoseconds. ';' in names becomes ':', control
// bytes '?'; kernel frames end in _[k], JIT frames in _[j]. Lines are sorted and unique.
struct FoldedOptions {
  View view = View::kOffCpu;
  // Adds [running], [lost] and [filtered] leaves, so that the lines sum to the time alive.
  bool wall = false;
};
std::string folded(const Profile& profile, const FoldedOptions& options = {});

// Gzipped pprof protobuf with the sample types events, off_cpu, blocked and run_queue; `view`
// chooses the one that tools show first.
Result<std::string> pprof(const Profile& profile, View view = View::kOffCpu);

// The document of docs/json.md.
std::string json(const Profile& profile);

// Text for people.
struct TableOptions {
  size_t rows = 10;    // of every list
  size_t frames = 24;  // of every stack; the middle of deeper ones is left out
  size_t width = 100;  // columns
  View view = View::kOffCpu;
  bool colour = false;
};
std::string table(const Profile& profile, const TableOptions& options = {});

// Text for people: how the user stacks were found, per binary, and what would make them better.
std::string stacks_health(const Profile& profile, const TableOptions& options = {});

// `page` is the built report (report/dist/report.html); the JSON goes into its data element,
// gzipped and in base64. An error if the page does not have exactly one.
Result<std::string> html(const Profile& profile, std::string_view page);

}  // namespace dwell
