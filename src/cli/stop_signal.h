// The first SIGINT or SIGTERM asks to stop and write; the second ends the program at once.
#pragma once

namespace dwell::cli {

void watch_stop_signals();
bool stop_requested();

}  // namespace dwell::cli
