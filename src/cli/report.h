// `dwell report FILE`: reads a recording and writes it as a table, folded stacks, pprof, JSON or an
// HTML page, or several of these at once. `dwell record` shows its result through write_outputs(),
// too. Called by main.cc.
#pragma once

#include <CLI/App.hpp>
#include <cstddef>
#include <string>

#include "base/result.h"
#include "cli/source_lines.h"
#include "export/export.h"
#include "profile/profile.h"
#include "profile/select.h"

namespace dwell::cli {

struct ReportOptions {
  std::string input;   // a .dwell file
  std::string folded;  // output paths: "" not wanted, "-" standard output (one of them at most)
  std::string pprof;
  std::string json;
  std::string html;
  bool table = false;          // the table as well; without any other output it comes anyway
  bool stacks_health = false;  // instead of the table
  Selection selection;
  SourceOptions source;
  View view = View::kOffCpu;
  bool wall = false;     // folded: with running, lost and filtered time
  size_t top = 10;       // entries of each list of the table
  size_t frames = 24;    // lines of each stack of the table
  bool no_open = false;  // never open the HTML page in a browser
};

// Adds the subcommand `report`, which fills `options` when the command line has it. The returned
// app is owned by `app`; it is true in a condition once it was parsed.
CLI::App* add_report_command(CLI::App& app, ReportOptions& options);

Status run_report(const ReportOptions& options);

// Everything but reading the file: selects, looks up source lines, then writes each output.
Status write_outputs(const Profile& profile, const ReportOptions& options);

}  // namespace dwell::cli
