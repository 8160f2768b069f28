#include "cli/events_options.h"

#include <fmt/format.h>

#include "base/text.h"
#include "cli/option_words.h"
#include "event_array/ring_sizes.h"

namespace dwell::cli {
namespace {

constexpr const char* kExample = "give MAP (an id), --pin PATH or --name NAME";

Status check_map(const EventsWords& words, EventsOptions& options) {
  const int ways = !words.map.empty() + !words.pin.empty() + !words.name.empty();
  if (options.list)
    return ways == 0 ? Status() : usage_error("--list takes no map: it shows which there are");
  if (ways == 0)
    return usage_error(fmt::format(
        "which perf event array? {}; `dwell events --list` shows which there are", kExample));
  if (ways > 1)
    return usage_error(fmt::format("MAP, --pin and --name exclude each other; {}", kExample));
  if (words.map.empty()) return {};
  const auto id = parse_u32(words.map);
  if (!id || *id == 0)
    return usage_error(
        fmt::format("'{}' is not the id of a map; {}", printable(words.map), kExample));
  options.id = *id;
  return {};
}

Status check_end(const EventsWords& words, EventsOptions& options) {
  if (!words.count.empty()) {
    DWELL_ASSIGN(options.count, parse_number(words.count, "--count", 1, UINT32_MAX));
  }
  if (words.duration.empty()) return {};
  const auto ns = parse_duration(words.duration);
  if (!ns) return usage_error(fmt::format("--duration: {}", ns.error().message));
  if (*ns == 0) return usage_error("--duration must be longer than 0, for example 10s");
  options.duration_ns = *ns;
  return {};
}

}  // namespace

CLI::App* add_events_command(CLI::App& app, EventsWords& words) {
  CLI::App* command = app.add_subcommand(
      "events", "Print the records of any perf event array; takes over its slots");
  const auto add = [&](const char* name, std::string& word, const char* value, const char* help) {
    command->add_option(name, word, help)->check(refuse_empty)->option_text(value);
  };
  add("MAP", words.map, " ", "Id of the map, as `dwell events --list` shows it");
  add("--pin", words.pin, "PATH", "The map pinned at this path");
  add("--name", words.name, "NAME", "The map of this name, if there is only one");
  command->add_flag("--list", words.list, "Show the perf event arrays of this machine, and end");
  command->add_flag("--json", words.json, "JSON lines instead of text (docs/events.md)");
  command->add_flag("--rate", words.rate,
                    "Records, bytes and loss of each CPU each second, instead of the records");
  add("--count", words.count, "N", "Stop after this many records");
  add("-d,--duration", words.duration, "TIME", "Stop after this time, e.g. 10s (else: Ctrl-C)");
  add("--ring", words.ring, "BYTES", "Size of each CPU's ring, rounded up (524288)");
  return command;
}

Result<EventsOptions> check(const EventsWords& words) {
  EventsOptions options;
  options.pin = words.pin;
  options.name = words.name;
  options.list = words.list;
  options.json = words.json;
  options.rate = words.rate;
  DWELL_TRY(check_map(words, options));
  DWELL_TRY(check_end(words, options));
  if (!words.ring.empty()) {
    DWELL_ASSIGN(options.ring_bytes, parse_number(words.ring, "--ring", 4096, kMaxRingBytes));
  }
  return options;
}

}  // namespace dwell::cli
