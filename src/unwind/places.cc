#include "unwind/places.h"

#include <iterator>

namespace dwell::unwind {

Places::Places(uint32_t size, uint32_t boundary) : boundary_(boundary) {
  if (size > 0) free_[0] = size;
}

// Where `count` may begin in free room that begins at `first`.
uint32_t Places::begin_within(uint32_t first, uint32_t count) const {
  if (boundary_ == 0) return first;
  const uint32_t used = first % boundary_;
  return used + count > boundary_ ? first + (boundary_ - used) : first;
}

std::optional<Place> Places::take(uint32_t count, uint64_t now_ns) {
  while (!freed_.empty() && now_ns >= freed_.front().at_ns + kReuseAfterNs) {
    join(freed_.front().place);
    freed_.pop_front();
  }
  if (boundary_ != 0 && count > boundary_) return std::nullopt;
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    const uint64_t begin = begin_within(at->first, count), end = uint64_t{at->first} + at->second;
    if (begin + count > end) continue;
    const Place place{static_cast<uint32_t>(begin), count};
    if (begin + count < end)
      free_[place.first + count] = static_cast<uint32_t>(end - begin - count);
    if (begin > at->first)
      at->second = place.first - at->first;
    else
      free_.erase(at);
    return place;
  }
  return std::nullopt;
}

void Places::give_back(Place place, uint64_t now_ns) { freed_.push_back({place, now_ns}); }

// With its free neighbours it is one.
void Places::join(Place place) {
  auto [at, added] = free_.try_emplace(place.first, place.count);
  if (const auto next = std::next(at);
      next != free_.end() && place.first + place.count == next->first) {
    at->second += next->second;
    free_.erase(next);
  }
  if (at == free_.begin()) return;
  const auto before = std::prev(at);
  if (before->first + before->second != at->first) return;
  before->second += at->second;
  free_.erase(at);
}

}  // namespace dwell::unwind
