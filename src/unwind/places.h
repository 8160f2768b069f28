// Room in an array that the kernel's walker reads: handed out piece by piece, and what is given
// back is handed out again only after kReuseAfterNs, when no walk can still be reading it. Used by
// LoadedTables for mappings, pages and rows; one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

namespace dwell::unwind {

struct Place {
  uint32_t first = 0;
  uint32_t count = 0;
};

class Places {
 public:
  static constexpr uint64_t kReuseAfterNs = 2'000'000'000;

  // No place crosses a multiple of `boundary`; 0: there is none.
  explicit Places(uint32_t size, uint32_t boundary = 0);

  // The lowest that is large enough.
  std::optional<Place> take(uint32_t count, uint64_t now_ns);
  void give_back(Place place, uint64_t now_ns);

 private:
  struct Freed {
    Place place;
    uint64_t at_ns = 0;
  };
  uint32_t begin_within(uint32_t first, uint32_t count) const;
  void join(Place place);

  uint32_t boundary_;
  std::map<uint32_t, uint32_t> free_;  // first -> count
  std::deque<Freed> freed_;            // to be free_ later
};

}  // namespace dwell::unwind
