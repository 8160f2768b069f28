#include "event_array/cpu_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fd.h"
#include "base/text.h"

namespace dwell {
inline namespace v0 {
namespace {

Status add_range(std::string_view range, std::vector<uint32_t>& cpus) {
  const size_t dash = range.find('-');
  DWELL_ASSIGN(const uint32_t first, parse_u32(range.substr(0, dash)));
  uint32_t last = first;
  if (dash != std::string_view::npos) {
    DWELL_ASSIGN(last, parse_u32(range.substr(dash + 1)));
  }
  if (last < first || last >= kMaxCpus)
    return usage_error(fmt::format("'{}' is no range of CPUs below {}", range, kMaxCpus));
  for (uint32_t cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  return {};
}

}  // namespace

Result<std::vector<uint32_t>> parse_cpu_list(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.remove_suffix(1);
  std::vector<uint32_t> cpus;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    DWELL_TRY(add_range(text.substr(0, comma), cpus));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
    if (text.empty()) return usage_error("a list of CPUs ends with a comma");
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::string format_cpu_list(const std::vector<uint32_t>& cpus) {
  std::string text;
  for (size_t i = 0; i < cpus.size();) {
    size_t end = i + 1;
    while (end < cpus.size() && cpus[end] == cpus[end - 1] + 1) ++end;
    if (!text.empty()) text += ',';
    text += fmt::format("{}", cpus[i]);
    if (end - i > 1) text += fmt::format("-{}", cpus[end - 1]);
    i = end;
  }
  return text;
}

Result<std::vector<uint32_t>> read_cpu_list(std::string_view which) {
  const std::string path = fmt::format("/sys/devices/system/cpu/{}", which);
  DWELL_ASSIGN(const std::string text, read_file(path, 1 << 16));
  auto cpus = parse_cpu_list(text);
  if (!cpus) return runtime_error(fmt::format("cannot read {}: {}", path, cpus.error().message));
  return cpus;
}

}  // namespace v0
}  // namespace dwell
