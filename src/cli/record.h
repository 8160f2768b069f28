// `dwell record`: from options to a written file.
#pragma once

#include "base/result.h"
#include "cli/record_options.h"

namespace dwell::cli {

// What happened, for main to tell.
struct RecordOutcome {
  uint64_t threads = 0;    // recorded; 0: nothing was
  int command_status = 0;  // of -- COMMAND
};
Result<RecordOutcome> run_record(const RecordOptions& options);

}  // namespace dwell::cli
