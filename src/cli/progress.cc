#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace dwell::cli {

Progress::Progress(bool quiet) : quiet_(quiet), wanted_(!quiet && isatty(STDERR_FILENO)) {}
Progress::~Progress() { clear(); }

void Progress::begin(const std::string& target) const {
  if (!quiet_ && !wanted_) fmt::print(stderr, "recording {}; Ctrl-C stops and writes\n", target);
}

void Progress::show(uint64_t elapsed_ns, uint64_t switches, uint64_t losses) {
  fmt::print(stderr, "\r\x1b[Krecording {:.1f} s, {} switches, {} lost   (Ctrl-C stops and writes)",
             static_cast<double>(elapsed_ns) / 1e9, switches, losses);
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace dwell::cli
