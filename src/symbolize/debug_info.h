// The file with the debug information of a recorded module, on this machine: the module's own file,
// its separate debug file, and dwz's alternate file of either.
//
// None is believed for its name: a build id must be the recorded one; a file without one must not
// have changed since the recording. Only regular files are opened. The network is asked only if the
// caller has servers to ask, for what is not on this machine. Called by `dwell report --lines`.
#pragma once

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace dwell::symbolize {

class DebugServers;

struct RecordedModule {
  std::string path;
  std::string build_id;           // lowercase hex, "" if it has none
  uint64_t recorded_unix_ns = 0;  // end of the recording
};

struct DebugInfo {
  Fd file;
  Fd alternate;                   // none if the file needs none, or it was not found
  std::string path;               // of `file`
  std::string alternate_missing;  // "" or why there is none: names that stand there are missing
};

// `servers` may be null.
Result<DebugInfo> find_debug_info(const RecordedModule& module,
                                  const std::string& debug_dir = "/usr/lib/debug",
                                  DebugServers* servers = nullptr);

}  // namespace dwell::symbolize
