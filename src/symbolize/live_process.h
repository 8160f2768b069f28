// A process as /proc shows it while it lives. Everything read here may vanish between two calls;
// then the answers are empty. Called by the process maps and the JIT maps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "symbolize/proc_maps.h"

namespace dwell::symbolize {

constexpr uint64_t kNsPerTick = 10'000'000;  // of starttime in /proc/PID/stat: USER_HZ is 100

class LiveProcess {
 public:
  static constexpr size_t kCommandLineMax = 4096;
  static constexpr size_t kMapsMax = size_t{64} << 20;
  static constexpr int kThreadsTried = 64;

  // Nothing if it is gone or only its zombie is left.
  static std::optional<LiveProcess> find(uint32_t pid);

  uint32_t pid() const { return pid_; }
  // CLOCK_BOOTTIME of its start in clock ticks.
  uint64_t start_ticks() const { return start_ticks_; }
  // "/proc/TID" of a thread that still has an address space: the leader may have exited.
  const std::string& directory() const { return directory_; }

  std::vector<MapsLine> executable_maps() const;
  std::string executable() const;
  std::string command_line() const;
  std::string root_link() const;         // "/" unless it is chrooted within our mount namespace
  uint32_t innermost_pid() const;        // its pid in its own pid namespace
  std::optional<uint32_t> user() const;  // effective uid, as we see it

 private:
  LiveProcess(uint32_t pid, std::string directory, uint64_t start_ticks)
      : pid_(pid), directory_(std::move(directory)), start_ticks_(start_ticks) {}
  uint32_t pid_;
  std::string directory_;
  uint64_t start_ticks_;
};

// State letter and start time out of the text of /proc/PID/stat, whose second field may hold
// blanks and parentheses.
struct StatFields {
  char state = '?';
  uint64_t start_ticks = 0;
};
std::optional<StatFields> parse_stat(std::string_view text);

std::string read_link(const std::string& path);

}  // namespace dwell::symbolize
