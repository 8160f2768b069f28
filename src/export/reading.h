// Reads our own outputs back in tests, by other code than that which wrote them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "export/pprof.pb.h"

namespace dwell {

struct FoldedLine {
  std::vector<std::string> frames;  // root first
  uint64_t ns = 0;
};
// Fails the running test on a line that does not match ^[^;]+(;[^;]+)* [0-9]+$.
std::vector<FoldedLine> parse_folded(const std::string& text);

std::string gunzip(const std::string& bytes);
// Fails the running test if a reader of pprof files would refuse it.
pprof_file::Profile read_pprof(const std::string& gzipped);
std::array<int64_t, 4> pprof_sums(const pprof_file::Profile& file);

}  // namespace dwell
