// The command line: which command, and what its end means to a shell (docs/exit-codes.md).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/doctor.h"
#include "cli/events.h"
#include "cli/events_options.h"
#include "cli/record.h"
#include "cli/record_options.h"
#include "cli/report.h"

namespace dwell::cli {
namespace {

enum ExitCode { kOk = 0, kRuntimeFailure = 1, kUsage = 2, kNotAllowed = 3, kNothingRecorded = 4 };

int tell(const Error& error) {
  fmt::print(stderr, "dwell: {}\n", error.message);
  switch (error.kind) {
    case Error::Kind::kUsage:
      return kUsage;
    case Error::Kind::kPrivilege:
      return kNotAllowed;
    case Error::Kind::kRuntime:
      break;
  }
  return kRuntimeFailure;
}

int record(const RecordWords& words) {
  const auto options = check(words);
  if (!options) return tell(options.error());
  const auto outcome = run_record(*options);
  if (!outcome) return tell(outcome.error());
  if (outcome->command_status > 0)
    fmt::print(stderr, "dwell: the command ended with status {}\n", outcome->command_status);
  if (!options->quiet)
    fmt::print(stderr, "wrote {}; show it with: dwell report {}\n", options->output,
               options->output);
  if (outcome->threads > 0) return kOk;
  fmt::print(stderr, "dwell: nothing was recorded: no thread of the target lived in the window\n");
  return kNothingRecorded;
}

int events(const EventsWords& words) {
  const auto options = check(words);
  if (!options) return tell(options.error());
  const Status status = run_events(*options);
  return status ? kOk : tell(status.error());
}

int run(int argc, char** argv) {
  CLI::App app("Shows where the threads of a Linux machine spend their wall time");
  app.require_subcommand(1);
  app.set_version_flag("--version", "dwell " DWELL_VERSION);
  RecordWords record_words;
  add_record_command(app, record_words);
  ReportOptions report_options;
  const CLI::App* report_command = add_report_command(app, report_options);
  EventsWords events_words;
  const CLI::App* events_command = add_events_command(app, events_words);
  bool doctor_json = false;
  CLI::App* doctor_command =
      app.add_subcommand("doctor", "Say whether this machine can be recorded, and what helps");
  doctor_command->add_flag("--json", doctor_json, "As JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kOk : kUsage;
  }
  if (*report_command) {
    const Status status = run_report(report_options);
    return status ? kOk : tell(status.error());
  }
  if (*events_command) return events(events_words);
  if (*doctor_command) return run_doctor(doctor_json);
  return record(record_words);
}

}  // namespace
}  // namespace dwell::cli

int main(int argc, char** argv) { return dwell::cli::run(argc, argv); }
