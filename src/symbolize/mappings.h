// The executable mappings of one address space over time: which file held an address at a moment?
//
// `live` mappings never overlap and are sorted; what they replaced is kept, with the span of time
// in which it was true, because stacks arrive later than the events that change the maps (dlclose
// and dlopen at one address). Times are CLOCK_MONOTONIC. Owned by the process maps.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace dwell::symbolize {

constexpr uint32_t kUnidentified = UINT32_MAX;

// Who maps it, as far as the source of the mapping says.
struct Backing {
  std::string path;     // as the process sees it, " (deleted)" included; "" if anonymous
  uint64_t device = 0;  // 0 with inode 0 if unknown
  uint64_t inode = 0;
  uint64_t generation = 0;
  std::string build_id;  // lowercase hex, "" if unknown

  bool is_file() const { return !path.empty() && path.front() == '/' && path != "//anon"; }
  bool operator==(const Backing&) const = default;
};

// One copy of each backing: the same few libraries are mapped by every process.
class Backings {
 public:
  std::shared_ptr<const Backing> intern(Backing backing);
  size_t size() const { return known_.size(); }

 private:
  static constexpr size_t kSweepAt = 4096;
  void sweep();
  std::unordered_multimap<size_t, std::weak_ptr<const Backing>> known_;
  size_t sweep_at_ = kSweepAt;
};

const std::shared_ptr<const Backing>& anonymous_backing();

struct Mapping {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t page_offset = 0;
  uint64_t from_ns = 0;
  uint64_t to_ns = UINT64_MAX;
  std::shared_ptr<const Backing> backing = anonymous_backing();  // shared between processes
  uint32_t object = kUnidentified;                               // ObjectId once it was identified

  bool holds(uint64_t address) const { return address >= start && address < end; }
  bool held_at(uint64_t time_ns) const { return time_ns >= from_ns && time_ns < to_ns; }
};

class Mappings {
 public:
  static constexpr size_t kLiveMax = 1 << 16;
  static constexpr size_t kPastMax = 4096;

  // A mapping appeared at `mapping.from_ns`: it replaces what it overlaps.
  void add(Mapping mapping);
  // The whole truth at `now_ns`, as read from /proc: mappings not among `current` are gone. New
  // ones appeared after the last such reading.
  void replace_all(std::vector<Mapping> current, uint64_t now_ns);

  // The mapping that held the address at that time, else the one nearest in time; nullptr if the
  // address was never executable. Valid until the next change.
  Mapping* find(uint64_t address, uint64_t time_ns);
  std::vector<Mapping>& live() { return live_; }
  const std::vector<Mapping>& live() const { return live_; }

 private:
  void retire(Mapping mapping, uint64_t to_ns);
  uint64_t last_end_within(const Mapping& range) const;
  std::vector<Mapping> live_;
  std::vector<Mapping> past_;  // oldest first
};

}  // namespace dwell::symbolize
