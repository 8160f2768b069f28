#include "cli/report.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string_view>

#include "base/fd.h"
#include "base/text.h"
#include "cli/browser.h"
#include "profile/dwell_file.h"
#include "report/page.h"

namespace dwell::cli {
namespace {

constexpr const char* kStandardOutput = "-";
constexpr size_t kTableWidth = 100;  // where there is no terminal to ask
constexpr size_t kTableWidthMax = 160;
constexpr size_t kTopMax = 100'000;

Status write_to_stdout(const std::string& bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size() ||
      std::fflush(stdout) != 0)
    return errno_error(errno, "cannot write to standard output");
  return {};
}

Status write_output(const std::string& path, const std::string& bytes) {
  if (path == kStandardOutput) return write_to_stdout(bytes);
  DWELL_TRY(write_file_atomically(path, bytes));
  fmt::print(stderr, "wrote {} ({})\n", printable(path), format_bytes(bytes.size()));
  return {};
}

bool is_same_file(const std::string& a, const std::string& b) {
  struct stat sa, sb;
  return stat(a.c_str(), &sa) == 0 && stat(b.c_str(), &sb) == 0 && sa.st_dev == sb.st_dev &&
         sa.st_ino == sb.st_ino && S_ISREG(sa.st_mode);
}

bool is_terminal() { return isatty(STDOUT_FILENO) == 1; }

// The mistakes that would lose data or garble a terminal, found before anything is written.
Status check_paths(const ReportOptions& options) {
  const std::pair<const char*, const std::string*> outputs[] = {{"--folded", &options.folded},
                                                                {"--pprof", &options.pprof},
                                                                {"--json", &options.json},
                                                                {"--html", &options.html}};
  int on_stdout = (options.table ? 1 : 0) + (options.stacks_health ? 1 : 0);
  for (const auto& [name, path] : outputs) {
    if (*path == kStandardOutput) ++on_stdout;
    if (!path->empty() && !options.input.empty() && is_same_file(*path, options.input))
      return usage_error(fmt::format("{} {} is the recording itself; choose another name", name,
                                     printable(*path)));
    for (const auto& [other_name, other] : outputs)
      if (name != other_name && !path->empty() && *path != kStandardOutput && *path == *other)
        return usage_error(fmt::format("{} and {} both name {}; choose two names", name, other_name,
                                       printable(*path)));
  }
  if (on_stdout > 1)
    return usage_error("only one output can go to standard output; give the others a file name");
  if (options.pprof == kStandardOutput && is_terminal())
    return usage_error(
        "--pprof - would write binary data to the terminal; redirect it or give a "
        "file name");
  return {};
}

size_t table_width() {
  struct winsize size {};
  if (!is_terminal() || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return kTableWidth;
  return std::min<size_t>(size.ws_col, kTableWidthMax);
}

bool wants_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return is_terminal() && (no_colour == nullptr || *no_colour == '\0') && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

Status write_html(const Profile& profile, const ReportOptions& options) {
  DWELL_ASSIGN(const std::string page, html(profile, report_page()));
  DWELL_TRY(write_output(options.html, page));
  const bool wanted = !options.no_open && options.html != kStandardOutput;
  if (wanted && may_open_browser(surroundings()) && !open_in_browser(options.html))
    fmt::print(stderr, "xdg-open is not installed: open {} in a browser\n",
               printable(options.html));
  return {};
}

void add_output_options(CLI::App& report, ReportOptions& options) {
  const char* group = "Outputs ('-' is standard output)";
  const auto add = [&](const char* name, std::string& path, const char* help) {
    report.add_option(name, path, help)->option_text("PATH")->group(group);
  };
  add("--html", options.html, "Interactive report: one page that needs no network");
  add("--folded", options.folded, "Folded stacks in nanoseconds, for flame graph tools");
  add("--pprof", options.pprof, "Gzipped pprof profile");
  add("--json", options.json, "Everything, as docs/json.md describes it");
  report.add_flag("--table", options.table, "The table as well; alone it is the default")
      ->group(group);
  report
      .add_flag("--stacks-health", options.stacks_health,
                "How the user stacks were found, per binary, and what would make them better")
      ->group(group);
  report.add_flag("--no-open", options.no_open, "Do not open the HTML report in a browser")
      ->group(group);
}

void add_part_options(CLI::App& report, ReportOptions& options) {
  const auto add = [&](const char* name, const char* value, std::vector<std::string>& list,
                       const char* help) {
    // One value each time: the next word may be FILE.
    report.add_option(name, list, help)
        ->expected(1, CLI::detail::expected_max_vector_size)
        ->allow_extra_args(false)
        ->option_text(value)
        ->group("Parts of the recording (each may be given several times)");
  };
  Selection& selection = options.selection;
  add("--process", "NAME|PID", selection.processes, "Only these processes");
  add("--thread", "NAME|TID", selection.threads, "Only these threads");
  add("--class", "CLASS", selection.classes, "Only waits of this class: interruptible, io, ...");
  add("--cause", "CAUSE", selection.causes, "Only waits with this cause: futex, epoll_wait, ...");
}

void add_source_options(CLI::App& report, ReportOptions& options) {
  const char* group = "Source (from debug information on this machine)";
  report.add_flag("--lines", options.source.lines, "File and line of each frame")->group(group);
  report.add_flag("--inline", options.source.inlined, "A frame for each inlined function")
      ->group(group);
  report
      .add_flag("--debuginfod", options.source.debuginfod,
                "Fetch debug files that are not here from the servers in DEBUGINFOD_URLS; "
                "without --lines: for frames without a name")
      ->group(group);
  report
      .add_option("--debug-dir", options.source.debug_dir,
                  "Where separate debug files are (" + options.source.debug_dir + ")")
      ->option_text("DIR")
      ->group(group);
}

void add_view_options(CLI::App& report, ReportOptions& options) {
  static const std::map<std::string, View> kViews = {
      {"off-cpu", View::kOffCpu}, {"blocked", View::kBlocked}, {"run-queue", View::kRunQueue}};
  report.add_option("--view", options.view, "Which time counts: off-cpu, blocked or run-queue")
      ->transform(CLI::CheckedTransformer(kViews))
      ->option_text("VIEW");
  report.add_flag("--wall", options.wall, "Folded stacks with running, lost and filtered time");
  const auto add_count = [&](const char* name, size_t& count, size_t least, const char* help) {
    report.add_option(name, count, fmt::format("{} ({})", help, count))
        ->check(CLI::Range(least, kTopMax))
        ->option_text("N");
  };
  add_count("--top", options.top, 1, "Entries of each list of the table");
  add_count("--frames", options.frames, 2, "Lines of each stack of the table");
}

}  // namespace

Status write_outputs(const Profile& whole, const ReportOptions& options) {
  DWELL_TRY(check_paths(options));
  Profile part;
  if (!options.selection.empty()) {
    DWELL_ASSIGN(part, select(whole, options.selection));
  }
  const bool with_source = options.source.any();
  if (with_source) {
    DWELL_ASSIGN(part, add_source_lines(options.selection.empty() ? whole : std::move(part),
                                        options.source));
  }
  const Profile& profile = options.selection.empty() && !with_source ? whole : part;
  if (!options.folded.empty())
    DWELL_TRY(write_output(options.folded,
                           folded(profile, {.view = options.view, .wall = options.wall})));
  if (!options.json.empty()) DWELL_TRY(write_output(options.json, json(profile)));
  if (!options.pprof.empty()) {
    DWELL_ASSIGN(const std::string bytes, pprof(profile, options.view));
    DWELL_TRY(write_output(options.pprof, bytes));
  }
  if (!options.html.empty()) DWELL_TRY(write_html(profile, options));
  const TableOptions text = {.rows = options.top,
                             .frames = options.frames,
                             .width = table_width(),
                             .view = options.view,
                             .colour = wants_colour()};
  if (options.stacks_health) return write_to_stdout(stacks_health(profile, text));
  const bool nothing_else = options.folded.empty() && options.json.empty() &&
                            options.pprof.empty() && options.html.empty();
  if (!options.table && !nothing_else) return {};
  return write_to_stdout(table(profile, text));
}

Status run_report(const ReportOptions& options) {
  DWELL_TRY(check_paths(options));
  DWELL_ASSIGN(const Profile profile, read_dwell_file(options.input));
  return write_outputs(profile, options);
}

CLI::App* add_report_command(CLI::App& app, ReportOptions& options) {
  CLI::App* report = app.add_subcommand(
      "report", "Show a recording: as a table, or as files that other tools read");
  report->add_option("FILE", options.input, "The recording, from `dwell record -o FILE`")
      ->option_text(" ")
      ->required();
  add_output_options(*report, options);
  add_part_options(*report, options);
  add_source_options(*report, options);
  add_view_options(*report, options);
  return report;
}

}  // namespace dwell::cli
