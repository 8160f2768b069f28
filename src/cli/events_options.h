// What `dwell events` can be told.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "base/result.h"

namespace dwell::cli {

struct EventsOptions {
  // Exactly one of the three, unless `list`.
  std::optional<uint32_t> id;
  std::string pin;
  std::string name;
  bool list = false;
  bool json = false;
  bool rate = false;  // statistics each second instead of the records
  std::optional<uint64_t> count;
  std::optional<uint64_t> duration_ns;
  uint64_t ring_bytes = 0;  // per CPU; 0: the library's default
};

// The raw words of the command line, turned into EventsOptions by `check`.
struct EventsWords {
  std::string map, pin, name, count, duration, ring;
  bool list = false, json = false, rate = false;
};

CLI::App* add_events_command(CLI::App& app, EventsWords& words);
Result<EventsOptions> check(const EventsWords& words);

}  // namespace dwell::cli
