#include "cli/schedstat.h"

#include <dirent.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/fd.h"

namespace dwell::cli {
namespace {

std::vector<uint32_t> numbers_in(const std::string& path) {
  std::vector<uint32_t> numbers;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  while (const dirent* entry = directory ? readdir(directory.get()) : nullptr)
    if (const unsigned long number = std::strtoul(entry->d_name, nullptr, 10); number != 0)
      numbers.push_back(static_cast<uint32_t>(number));
  return numbers;
}

}  // namespace

Schedstats read_schedstats(const std::vector<uint32_t>& pids) {
  Schedstats all;
  for (const uint32_t pid : pids.empty() ? numbers_in("/proc") : pids) {
    for (const uint32_t tid : numbers_in(fmt::format("/proc/{}/task", pid))) {
      const uint64_t from = monotonic_ns();
      const auto text = read_file(fmt::format("/proc/{}/task/{}/schedstat", pid, tid), 4096);
      unsigned long long on_cpu = 0, run_queue = 0;
      if (text && std::sscanf(text->c_str(), "%llu %llu", &on_cpu, &run_queue) == 2)
        all[{pid, tid}] = {on_cpu, run_queue, from, monotonic_ns()};
    }
  }
  return all;
}

std::optional<SchedstatDelta> schedstat_between(const Schedstats& before, const Schedstats& after,
                                                uint32_t pid, uint32_t tid) {
  const auto first = before.find({pid, tid}), last = after.find({pid, tid});
  if (first == before.end() || last == after.end()) return std::nullopt;
  return SchedstatDelta{.on_cpu_ns = last->second.on_cpu_ns - first->second.on_cpu_ns,
                        .run_queue_ns = last->second.run_queue_ns - first->second.run_queue_ns,
                        .stretch_ns = last->second.to_ns - first->second.from_ns};
}

}  // namespace dwell::cli
