#include "probe/scheduler_text.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace dwell::probe {
namespace {

// Address of the line "ADDRESS T NAME\n", 0 if there is none.
uint64_t address_of(std::string_view kallsyms, std::string_view name) {
  const size_t at = kallsyms.find(std::string(" T ") + std::string(name) + "\n");
  if (at == std::string_view::npos) return 0;
  const size_t line = kallsyms.rfind('\n', at) + 1;  // npos + 1 == 0: the first line
  return std::strtoull(std::string(kallsyms.substr(line, at - line)).c_str(), nullptr, 16);
}

}  // namespace

SchedulerText find_scheduler_text() {
  const auto kallsyms = read_file("/proc/kallsyms", size_t{256} << 20);
  if (!kallsyms) return {};
  const SchedulerText text = {address_of(*kallsyms, "__sched_text_start"),
                              address_of(*kallsyms, "__sched_text_end")};
  return text.start < text.end ? text : SchedulerText{};
}

}  // namespace dwell::probe
