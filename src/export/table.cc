#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text.h"
#include "export/export.h"
#include "export/health_text.h"
#include "export/table_waits.h"
#include "export/text_layout.h"
#include "export/words.h"

namespace dwell {
namespace {

constexpr size_t kNameColumns = 32;
constexpr size_t kTextColumnsMax = 80;

uint64_t censored_ns(const ThreadTimes& times) {
  return times.censored_run_queue_ns + times.censored_blocked_ns;
}

std::string header_section(const Profile& profile, const TableOptions& options) {
  const Window& window = profile.window;
  std::string out = heading(
      options,
      fmt::format("dwell {}: {}, window {} from {}", clip(profile.dwell_version, kTextColumnsMax),
                  profile.target.empty() ? "unknown target" : clip(profile.target, kTextColumnsMax),
                  format_duration(window.length_ns()),
                  format_time(window.start_unix_ns).substr(0, 19) + "Z"));
  out += fmt::format("\n{}, Linux {}, {}\n", clip(profile.host, kTextColumnsMax),
                     clip(profile.kernel, kTextColumnsMax), plural(profile.cpus, "CPU"));
  if (profile.options.empty()) return out;
  std::string joined;
  for (const std::string& option : profile.options) joined += option + " ";
  return out + wrap("options: ", joined, 9, options.width);
}

std::string wall_line(const std::string& name, const ThreadTimes& times) {
  return fmt::format("{}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}\n", pad(name, kNameColumns),
                     format_duration(times.alive_ns), format_duration(times.running_ns),
                     format_duration(times.run_queue_ns), format_duration(times.blocked_ns),
                     format_duration(censored_ns(times)), format_duration(times.lost_ns));
}

struct ProcessTimes {
  uint32_t process = 0;
  uint64_t threads = 0;
  bool kernel = false;
  ThreadTimes times;

  // Without waits that began before the window or outlasted it: mostly of those who slept all the
  // time.
  uint64_t active_ns() const {
    return times.running_ns + times.run_queue_ns + times.blocked_ns + times.lost_ns;
  }
};

// Programs before kernel threads; those with the most to tell first.
std::vector<ProcessTimes> times_by_process(const Profile& profile) {
  std::vector<ProcessTimes> by_process(profile.processes.size());
  for (uint32_t i = 0; i < by_process.size(); ++i) by_process[i].process = i;
  for (const Thread& thread : profile.threads) {
    ProcessTimes& sum = by_process[thread.process];
    sum.threads += thread.folded ? thread.folded_count : 1;
    sum.kernel = sum.kernel || thread.kernel_thread;
    sum.times.alive_ns += thread.times.alive_ns;
    sum.times.running_ns += thread.times.running_ns;
    sum.times.run_queue_ns += thread.times.run_queue_ns;
    sum.times.blocked_ns += thread.times.blocked_ns;
    sum.times.censored_run_queue_ns += thread.times.censored_run_queue_ns;
    sum.times.censored_blocked_ns += thread.times.censored_blocked_ns;
    sum.times.lost_ns += thread.times.lost_ns;
  }
  // What stands for overflow rows has no books.
  std::erase_if(by_process, [](const ProcessTimes& p) { return p.times.alive_ns == 0; });
  std::ranges::sort(by_process, [](const ProcessTimes& a, const ProcessTimes& b) {
    return std::tuple(a.kernel, b.active_ns(), b.times.alive_ns, a.process) <
           std::tuple(b.kernel, a.active_ns(), a.times.alive_ns, b.process);
  });
  return by_process;
}

std::string wall_section(const Profile& profile, const TableOptions& options, const Totals& sum) {
  const ThreadTimes& all = sum.threads;
  std::string out = "\n" +
                    heading(options, fmt::format("{}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}",
                                                 pad("Wall time", kNameColumns), "alive", "running",
                                                 "CPU wait", "blocked", "censored", "lost")) +
                    "\n";
  out += wall_line("all", all);
  out += fmt::format("{}{:>11}{:>11}{:>11}{:>11}{:>11}{:>11}\n", pad("", kNameColumns),
                     percent(all.alive_ns, all.alive_ns), percent(all.running_ns, all.alive_ns),
                     percent(all.run_queue_ns, all.alive_ns), percent(all.blocked_ns, all.alive_ns),
                     percent(censored_ns(all), all.alive_ns), percent(all.lost_ns, all.alive_ns));
  const std::vector<ProcessTimes> processes = times_by_process(profile);
  const size_t shown = std::min(options.rows, processes.size());
  for (size_t i = 0; i < shown; ++i) {
    const std::string threads = ", " + plural(processes[i].threads, "thread");
    out += wall_line(process_text(profile, processes[i].process,
                                  kNameColumns - std::min(kNameColumns, threads.size())) +
                         threads,
                     processes[i].times);
  }
  if (processes.size() > shown)
    out += fmt::format("... and {}\n", plural(processes.size() - shown, "more process"));
  return out;
}

// How far our books are from the kernel's own, over the threads for which it gave them.
std::string schedstat_text(const Profile& profile) {
  uint64_t alive = 0, running_off = 0, queue_off = 0;
  for (const Thread& thread : profile.threads) {
    if (!thread.schedstat) continue;
    const SchedstatDelta& kernel = *thread.schedstat;
    const ThreadTimes& ours = thread.times;
    alive += ours.alive_ns;
    running_off += kernel.unexplained_ns(ours.running_ns, kernel.on_cpu_ns, ours.alive_ns);
    queue_off += kernel.unexplained_ns(ours.run_queue_ns + ours.censored_run_queue_ns,
                                       kernel.run_queue_ns, ours.alive_ns);
  }
  if (alive == 0) return "schedstat not available";
  const uint64_t worst = std::max(running_off, queue_off);
  return fmt::format("schedstat agrees to {:.2f} %",
                     100 * static_cast<double>(worst) / static_cast<double>(alive));
}

std::string conservation_section(const Profile& profile, const TableOptions& options,
                                 const Totals& sum) {
  const ThreadTimes& all = sum.threads;
  const std::vector<std::string> words = {"alive " + format_duration(all.alive_ns),
                                          "= running " + format_duration(all.running_ns),
                                          "+ run queue " + format_duration(all.run_queue_ns),
                                          "+ blocked " + format_duration(all.blocked_ns),
                                          "+ censored " + format_duration(censored_ns(all)),
                                          "+ lost " + format_duration(all.lost_ns) + ",",
                                          fmt::format("residual {} ns;", sum.residual_ns),
                                          schedstat_text(profile)};
  return "\n" + wrap_words("Conservation: ", words, 14, options.width);
}

std::string time_if_known(const Loss& loss) {
  return loss.ns ? ", " + format_duration(*loss.ns) : "";
}

// What was lost, one by one with what helps; what was only counted in one paragraph.
std::string losses_section(const Profile& profile, const TableOptions& options) {
  std::string lost, counted;
  for (const Loss& loss : profile.losses) {
    if (loss.count == 0 && loss.ns.value_or(0) == 0) continue;
    if (loss.is_loss) {
      lost += wrap("  ",
                   fmt::format("{}: {}{}: {}", loss.name, plural(loss.count, "time"),
                               time_if_known(loss), loss.meaning),
                   4, options.width);
    } else {
      counted += fmt::format("{}{} {}{}", counted.empty() ? "" : "; ", loss.name,
                             grouped(loss.count), time_if_known(loss));
    }
  }
  std::string out = lost.empty() ? "Losses: none\n" : heading(options, "Losses") + "\n" + lost;
  if (!counted.empty()) out += wrap("Counted (docs/losses.md): ", counted, 4, options.width);
  return out;
}

// Processes have modules of one name that are not the same, "[anon]": one line for all of them.
std::string unresolved_section(const Profile& profile, const TableOptions& options) {
  if (profile.unresolved.empty()) return "";
  std::map<std::tuple<StringId, std::string_view, std::string_view>, uint64_t> frames;
  for (const UnresolvedModule& unresolved : profile.unresolved)
    frames[{profile.modules[unresolved.module].path, unresolved.reason, unresolved.remedy}] +=
        unresolved.frames;
  std::vector<std::pair<uint64_t, decltype(frames)::key_type>> worst;
  for (const auto& [key, count] : frames) worst.emplace_back(count, key);
  std::ranges::sort(worst, std::greater<>());
  std::string out = heading(options, "Frames without a name") + "\n";
  const size_t shown = std::min(options.rows, worst.size());
  for (size_t i = 0; i < shown; ++i) {
    const auto& [path, reason, remedy] = worst[i].second;
    const std::string& name = profile.text(path);
    out += wrap("  ",
                fmt::format("{}: {}: {}; {}",
                            name.empty() ? "[unknown]" : name.substr(0, kWrapBytesMax / 2),
                            plural(worst[i].first, "frame"), reason, remedy),
                4, options.width);
  }
  if (worst.size() > shown)
    out += fmt::format("  ... and {}\n", plural(worst.size() - shown, "more module"));
  return out;
}

std::string cost_section(const Profile& profile, const TableOptions& options) {
  const double window = std::max<double>(1, static_cast<double>(profile.window.length_ns()));
  return wrap("Recorder: ",
              fmt::format("{} of kernel memory, {} of its own, {:.1f} % of a CPU",
                          format_bytes(profile.kernel_memory_bytes),
                          format_bytes(profile.user_memory_bytes),
                          100 * static_cast<double>(profile.recorder_cpu_ns) / window),
              10, options.width);
}

std::string warnings_section(const Profile& profile, const TableOptions& options) {
  std::string out;
  for (size_t i = 0; i < profile.warnings.size(); ++i) {
    if (i == options.rows) {
      out += fmt::format("... and {}\n", plural(profile.warnings.size() - i, "more warning"));
      break;
    }
    out += wrap("warning: ", profile.warnings[i], 9, options.width);
  }
  return out;
}

}  // namespace

std::string table(const Profile& profile, const TableOptions& wanted) {
  TableOptions options = wanted;
  options.width = std::max(options.width, kWidthMin);
  const Totals sum = totals(profile);
  const uint64_t alive_ns = sum.threads.alive_ns;
  return header_section(profile, options) + wall_section(profile, options, sum) +
         causes_section(profile, options, alive_ns) + waits_section(profile, options, alive_ns) +
         conservation_section(profile, options, sum) + losses_section(profile, options) +
         health_section(profile, options) + unresolved_section(profile, options) +
         cost_section(profile, options) + warnings_section(profile, options);
}

}  // namespace dwell
