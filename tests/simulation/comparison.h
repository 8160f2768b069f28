// The probe's books against the simulator's: life by life, then in sums.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "native_probe.h"
#include "scheduler.h"

namespace dwell::simulation {

struct Comparison {
  uint64_t lives = 0;
  uint64_t equal = 0;         // every field to the nanosecond
  uint64_t sums_conserved = 0;  // the fields add up to the time alive
  uint64_t missing = 0;       // no record (they may be folded into lost_threads)
  uint64_t unexpected = 0;    // records of no life
  uint64_t rows_equal = 0;    // rows, filtered and overflow add up to the books
  uint64_t residual_ns = 0;   // sum over lives of |alive - fields|
  uint64_t alive_ns = 0;
  uint64_t running_off_ns = 0;  // sum of |told - truth| of a field
  std::vector<std::string> differences;  // the first few, for people
};

Comparison compare(const Scheduler& scheduler, const Told& told);

}  // namespace dwell::simulation
