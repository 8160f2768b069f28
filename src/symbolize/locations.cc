#include "symbolize/locations.h"

#include <sys/random.h>

namespace dwell::symbolize {
namespace {

uint64_t random_seed() {
  uint64_t seed = 0x9e3779b97f4a7c15;
  if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != sizeof(seed)) seed ^= seed >> 7;
  return seed | 1;
}

// Both halves of the product depend on all bits of both factors.
uint64_t mix(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

Locations::Locations() : slots_(kFirstSlots), seed_(random_seed()) {}

// Where it is, or the free slot where it belongs.
size_t Locations::slot_of(const Location& location) const {
  const uint64_t rest = uint64_t{location.object} << 32 | uint64_t{location.remembered} << 2 |
                        (location.return_address ? 2 : 0) |
                        (location.kind == FrameKind::kKernel ? 1 : 0);
  const uint64_t hash = mix(location.address ^ seed_, mix(rest ^ 0x9e3779b97f4a7c15, seed_) | 1);
  const size_t mask = slots_.size() - 1;
  size_t slot = hash & mask;
  while (slots_[slot] != 0 && !(all_[slots_[slot] - 1] == location)) slot = (slot + 1) & mask;
  return slot;
}

void Locations::grow() {
  slots_.assign(slots_.size() * 2, 0);
  for (size_t i = 0; i < all_.size(); ++i) slots_[slot_of(all_[i])] = static_cast<uint32_t>(i + 1);
}

Locations::Interned Locations::intern(const Location& location) {
  size_t slot = slot_of(location);
  if (slots_[slot] != 0) return {slots_[slot] - 1, false};
  if (all_.size() >= kLocationsMax) return {};
  if ((all_.size() + 1) * 3 > slots_.size() * 2) {
    grow();
    slot = slot_of(location);
  }
  all_.push_back(location);
  slots_[slot] = static_cast<uint32_t>(all_.size());
  return {static_cast<LocationId>(all_.size() - 1), true};
}

}  // namespace dwell::symbolize
