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
  uint64_t equal = 0;       // every field to the nanosecond
  uint64_t conserved = 0;   // its fields and what is lost add up to the time alive
  uint64_t admitted = 0;    // of these: the probe says itself that it does not vouch for a part
  uint64_t missing = 0;     // no record
  uint64_t unexpected = 0;  // records of no life
  uint64_t rows_equal = 0;  // rows, what a filter kept out and overflow add up to the books
  uint64_t alive_ns = 0;
  Books missing_books;            // the truth of those without a record
  uint64_t missing_alive_ns = 0;  // ...
  uint64_t lost_ns = 0;           // in books, and what the probe does not vouch for
  // Sum over lives of |told - truth|.
  uint64_t running_off_ns = 0;
  uint64_t phases_off_ns = 0;            // run queue told as blocked, or the other way round
  std::vector<std::string> differences;  // the first few, for people
};

Comparison compare(const Scheduler& scheduler, const Told& told);

}  // namespace dwell::simulation
