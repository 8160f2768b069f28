// The first SIGINT or SIGTERM asks to stop and write; the second ends the program at once, with
// `abort_text` (static) on standard error.
#pragma once

namespace dwell::cli {

void watch_stop_signals(const char* abort_text);
bool stop_requested();

}  // namespace dwell::cli
