// `dwell report --lines` and `--inline`: source positions and inlined functions for the frames of a
// finished recording, from the debug information that is on this machine now.
//
// A profile in, a profile out: what could not be looked up stays as it was, and the warnings say
// for which modules and why. Called by report.cc, after the selection.
#pragma once

#include <string>

#include "profile/profile.h"

namespace dwell::cli {

struct SourceOptions {
  bool lines = false;    // file and line of each frame
  bool inlined = false;  // a frame of its own for each inlined function
  std::string debug_dir = "/usr/lib/debug";
};

Profile add_source_lines(Profile profile, const SourceOptions& options);

}  // namespace dwell::cli
