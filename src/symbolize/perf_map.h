// The text of a perf-PID.map: "START SIZE name" lines by which a JIT compiler names its code.
//
// The target writes it while we read it: lines overlap (later ones win: code was moved or freed),
// the last one may be half written, sizes may be nonsense. Bounded by kEntriesMax and kNamesMax.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace dwell::symbolize {

class PerfMap {
 public:
  static constexpr size_t kEntriesMax = 1'000'000;
  static constexpr size_t kNamesMax = size_t{64} << 20;
  static constexpr size_t kLineMax = 64 << 10;  // longer lines are skipped

  struct Match {
    std::string_view name;  // valid until the next append()
    uint64_t address = 0;
  };

  // The next bytes of the file. A line without its end waits for more.
  void append(std::string_view text);
  std::optional<Match> find(uint64_t address) const;
  size_t size() const { return entries_.size(); }
  bool full() const { return full_; }
  size_t memory_bytes() const { return entries_.size() * kEntryCost + names_.size(); }

 private:
  static constexpr size_t kEntryCost = 80;  // of a map node
  struct Entry {
    uint64_t end;
    uint32_t name;
    uint64_t address;  // start of the function: an entry may be the rest of a covered one
  };
  void add_line(std::string_view line);
  void add(uint64_t start, uint64_t end, std::string_view name);
  uint32_t add_name(std::string_view name);

  std::map<uint64_t, Entry> entries_;  // by start, never overlapping
  std::string names_;
  std::string unfinished_;
  bool skipping_ = false;  // inside an endless line
  bool full_ = false;
};

}  // namespace dwell::symbolize
