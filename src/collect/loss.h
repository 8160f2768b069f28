// Every counter of the probe with its name, what it means and what helps. The names are stable
// (docs/losses.md).
#pragma once

#include <span>
#include <string_view>

#include "abi/off_cpu.h"

namespace dwell::collect {

struct CounterMeaning {
  dwell_counter counter;
  std::string_view name;
  std::string_view meaning;
  bool is_loss;  // else information
  bool has_ns;
};
std::span<const CounterMeaning> counter_meanings();

}  // namespace dwell::collect
