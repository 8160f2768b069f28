#include "cli/stop_signal.h"

#include <signal.h>
#include <unistd.h>

#include <cstring>

namespace dwell::cli {
namespace {

volatile sig_atomic_t stop_count = 0;
const char* text_of_abort = "";

// Only what a signal handler may call.
void tell(const char* text) {
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, text, strlen(text));
}

void note_stop(int signal_number) {
  stop_count = stop_count + 1;
  if (stop_count < 2) return;
  tell("\ndwell: ");
  tell(text_of_abort);
  tell("\n");
  _exit(128 + signal_number);
}

}  // namespace

void watch_stop_signals(const char* abort_text) {
  text_of_abort = abort_text;
  struct sigaction action = {};
  action.sa_handler = note_stop;  // no SA_RESTART: poll must return
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

bool stop_requested() { return stop_count > 0; }

}  // namespace dwell::cli
