// Made-up profiles for tests, the fuzz corpus and benchmarks: every field used, books that balance,
// and, if asked, the names that break text formats. Never linked into dwell itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "profile/profile.h"

namespace dwell {

struct RandomProfileOptions {
  uint64_t seed = 1;
  size_t processes = 3;
  size_t threads = 9;
  size_t frames = 200;
  size_t stacks = 40;
  size_t rows = 120;
  size_t depth_max = 30;
  size_t intervals = 50;  // of the timeline; 0: none
  bool hostile_names = false;
};

// Rows and books agree: per thread, its rows plus filtered_ns are its off-CPU time, and the
// residual is 0. Equal options give equal profiles.
Profile random_profile(const RandomProfileOptions& options);

// Names as a hostile process may choose them: ';', newlines, quotes, markup, control bytes, invalid
// UTF-8, blanks and digits at the end, empty, a megabyte.
std::vector<std::string> hostile_names();

}  // namespace dwell
