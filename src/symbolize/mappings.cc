#include "symbolize/mappings.h"

#include <algorithm>

namespace dwell::symbolize {
namespace {

bool agree(uint64_t a, uint64_t b) { return a == 0 || b == 0 || a == b; }

bool same_file(const Backing& a, const Backing& b) {
  return a == b || (a.path == b.path && agree(a.inode, b.inode) &&
                    (a.build_id.empty() || b.build_id.empty() || a.build_id == b.build_id));
}

// Two sightings of one mapping, or two pieces of it: same file, same file offset per address.
bool continues(const Mapping& a, const Mapping& b) {
  const Backing& x = *a.backing;
  const Backing& y = *b.backing;
  if (!x.is_file() || !y.is_file()) return x.path == y.path;
  return a.start - a.page_offset == b.start - b.page_offset && same_file(x, y);
}

// Takes from an earlier sighting what the later one does not know: /proc tells the inode, an event
// may tell the build id, which says more.
void inherit(Mapping& later, const Mapping& earlier) {
  later.from_ns = std::min(later.from_ns, earlier.from_ns);
  if (later.object == kUnidentified) later.object = earlier.object;
  if (later.backing->build_id.empty() && !earlier.backing->build_id.empty())
    later.backing = earlier.backing;
}

uint64_t distance(const Mapping& mapping, uint64_t time_ns) {
  if (mapping.held_at(time_ns)) return 0;
  return time_ns < mapping.from_ns ? mapping.from_ns - time_ns : time_ns - mapping.to_ns + 1;
}

}  // namespace

const std::shared_ptr<const Backing>& anonymous_backing() {
  static const auto backing = std::make_shared<const Backing>();
  return backing;
}

std::shared_ptr<const Backing> Backings::intern(Backing backing) {
  const std::hash<std::string> hash_of;
  const size_t hash = hash_of(backing.path) ^ hash_of(backing.build_id) * 31 ^
                      (backing.inode + backing.generation) * 0x9e3779b97f4a7c15ull;
  const auto [first, last] = known_.equal_range(hash);
  for (auto at = first; at != last; ++at)
    if (auto known = at->second.lock(); known && *known == backing) return known;
  if (known_.size() >= sweep_at_) sweep();
  auto added = std::make_shared<const Backing>(std::move(backing));
  known_.emplace(hash, added);
  return added;
}

void Backings::sweep() {
  std::erase_if(known_, [](const auto& item) { return item.second.expired(); });
  sweep_at_ = std::max(kSweepAt, 2 * known_.size());
}

void Mappings::retire(Mapping mapping, uint64_t to_ns) {
  mapping.to_ns = std::max(to_ns, mapping.from_ns);
  if (past_.size() >= kPastMax) past_.erase(past_.begin(), past_.begin() + kPastMax / 4);
  past_.push_back(std::move(mapping));
}

void Mappings::add(Mapping mapping) {
  // A JIT changes the protection of pieces of one anonymous region all the time; one mapping with
  // the union of them says the same.
  auto first = std::ranges::partition_point(
      live_, [&](const Mapping& old) { return old.end <= mapping.start; });
  std::vector<Mapping> rest;
  auto last = first;
  for (; last != live_.end() && last->start < mapping.end; ++last) {
    if (continues(*last, mapping)) {
      const uint64_t start = std::min(mapping.start, last->start);
      if (mapping.backing->is_file()) mapping.page_offset -= mapping.start - start;
      mapping.start = start;
      mapping.end = std::max(mapping.end, last->end);
      inherit(mapping, *last);
      continue;
    }
    Mapping covered = *last;
    covered.start = std::max(last->start, mapping.start);
    covered.end = std::min(last->end, mapping.end);
    covered.page_offset += covered.start - last->start;
    if (last->start < mapping.start) {
      rest.push_back(*last);
      rest.back().end = mapping.start;
    }
    if (last->end > mapping.end) {
      rest.push_back(*last);
      rest.back().page_offset += mapping.end - last->start;
      rest.back().start = mapping.end;
    }
    retire(std::move(covered), mapping.from_ns);
  }
  if (live_.size() + rest.size() >= kLiveMax) return;
  rest.push_back(std::move(mapping));
  std::ranges::sort(rest, {}, &Mapping::start);
  const auto at = live_.erase(first, last);
  live_.insert(at, std::make_move_iterator(rest.begin()), std::make_move_iterator(rest.end()));
}

// When the last mapping that lay in this range was replaced; 0 if there was none.
uint64_t Mappings::last_end_within(const Mapping& range) const {
  uint64_t last = 0;
  for (const Mapping& past : past_)
    if (past.start < range.end && past.end > range.start) last = std::max(last, past.to_ns);
  return last;
}

void Mappings::replace_all(std::vector<Mapping> current, uint64_t now_ns) {
  std::vector<Mapping> old = std::move(live_);
  live_.clear();
  if (current.size() > kLiveMax) current.resize(kLiveMax);
  std::ranges::sort(current, {}, &Mapping::start);
  for (Mapping& now : current) now.from_ns = std::max(now.from_ns, last_end_within(now));
  for (Mapping& mapping : old) {
    auto seen = std::ranges::partition_point(
        current, [&](const Mapping& now) { return now.end <= mapping.start; });
    while (seen != current.end() && seen->start < mapping.end && !continues(*seen, mapping)) ++seen;
    if (seen == current.end() || seen->start >= mapping.end) {
      retire(std::move(mapping), now_ns);
    } else {
      // What an earlier sighting says of the beginning is worth more than a guess.
      seen->from_ns = mapping.from_ns;
      inherit(*seen, mapping);
    }
  }
  live_ = std::move(current);
}

Mapping* Mappings::find(uint64_t address, uint64_t time_ns) {
  const auto after = std::ranges::upper_bound(live_, address, {}, &Mapping::start);
  Mapping* best = nullptr;
  if (after != live_.begin() && std::prev(after)->holds(address)) best = &*std::prev(after);
  if (best != nullptr && best->held_at(time_ns)) return best;
  for (auto past = past_.rbegin(); past != past_.rend(); ++past) {
    if (!past->holds(address)) continue;
    if (best == nullptr || distance(*past, time_ns) < distance(*best, time_ns)) best = &*past;
  }
  return best;
}

}  // namespace dwell::symbolize
