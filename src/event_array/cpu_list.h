// Sets of CPUs as sysfs writes them: "0-3,5,8-11". Never a count: ids have holes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace dwell {
inline namespace v0 {

inline constexpr uint32_t kMaxCpus = 8192;  // CONFIG_NR_CPUS of the largest kernels

// Ascending, without doubles. An empty line is an empty set. Ids from kMaxCpus on are refused.
Result<std::vector<uint32_t>> parse_cpu_list(std::string_view text);

// Back to "0-3,5": for messages.
std::string format_cpu_list(const std::vector<uint32_t>& cpus);

// `which` is "online", "possible" or "present".
Result<std::vector<uint32_t>> read_cpu_list(std::string_view which);

}  // namespace v0
}  // namespace dwell
