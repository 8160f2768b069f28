#include "cli/stop_signal.h"

#include <signal.h>
#include <unistd.h>

#include <cstring>

namespace dwell::cli {
namespace {

volatile sig_atomic_t stop_count = 0;

void note_stop(int signal_number) {
  stop_count = stop_count + 1;
  if (stop_count < 2) return;
  static const char text[] = "\ndwell: aborted, nothing was written\n";
  if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(128 + signal_number);
  _exit(128 + signal_number);
}

}  // namespace

void watch_stop_signals() {
  struct sigaction action = {};
  action.sa_handler = note_stop;  // no SA_RESTART: poll must return
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

bool stop_requested() { return stop_count > 0; }

}  // namespace dwell::cli
