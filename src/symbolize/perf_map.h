// The text of a perf-PID.map: "START SIZE name" lines by which a JIT compiler names its code.
//
// The target writes it while we read it: lines overlap (later ones win: code was moved or freed),
// the last one may be half written, sizes may be nonsense. Bounded by the limits of CodeRanges.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "symbolize/code_ranges.h"

namespace dwell::symbolize {

class PerfMap {
 public:
  static constexpr uint64_t kFileMax = uint64_t{256} << 20;
  static constexpr size_t kLineMax = 64 << 10;  // longer lines are skipped

  // Where the reading goes on.
  uint64_t next_offset() const { return read_bytes_; }
  // The next bytes of the file. A line without its end waits for more.
  void append(std::string_view text);
  std::optional<CodeRanges::Match> find(uint64_t address) const { return code_.find(address); }
  size_t size() const { return code_.size(); }
  bool full() const { return code_.full() || read_bytes_ >= kFileMax; }
  size_t memory_bytes() const { return code_.memory_bytes(); }

 private:
  void add_line(std::string_view line);

  CodeRanges code_;
  uint64_t read_bytes_ = 0;
  std::string unfinished_;
  bool skipping_ = false;  // inside an endless line
};

}  // namespace dwell::symbolize
