// `dwell report --lines`, `--inline` and `--debuginfod`: source positions, inlined functions and
// missing names for the frames of a finished recording, from the debug information that is on this
// machine now or, if asked for, on debuginfod servers.
//
// A profile in, a profile out: what could not be looked up stays as it was, and the warnings say
// for which modules and why. Called by report.cc, after the selection.
#pragma once

#include <string>

#include "base/result.h"
#include "profile/profile.h"

namespace dwell::cli {

struct SourceOptions {
  bool lines = false;    // file and line of each frame
  bool inlined = false;  // a frame of its own for each inlined function
  // Fetch what is not here from the servers in DEBUGINFOD_URLS. Alone: for frames without a name.
  bool debuginfod = false;
  std::string debug_dir = "/usr/lib/debug";

  bool any() const { return lines || inlined || debuginfod; }
};

// An error only if servers are wanted and none is named.
Result<Profile> add_source_lines(Profile profile, const SourceOptions& options);

}  // namespace dwell::cli
