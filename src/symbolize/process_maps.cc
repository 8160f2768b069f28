#include "symbolize/process_maps.h"

#include <sys/sysmacros.h>

#include <algorithm>

#include "base/clock.h"

namespace dwell::symbolize {
namespace {

uint64_t monotonic_start(const ProcessKey& key) {
  return key.start_boottime_ns - std::min(key.start_boottime_ns, boottime_lead_ns());
}

// How well a life fits a key; nothing if it is another life of the number.
std::optional<uint64_t> misfit(const Life& life, const ProcessKey& key) {
  if (life.start_boottime_ns)
    return *life.start_boottime_ns == key.start_boottime_ns ? std::optional<uint64_t>(0)
                                                            : std::nullopt;
  if (life.start_ticks)
    return *life.start_ticks == key.start_boottime_ns / kNsPerTick ? std::optional<uint64_t>(1)
                                                                   : std::nullopt;
  constexpr uint64_t kClockJitterNs = 1'000'000;  // two clocks are not read at one instant
  const uint64_t start = monotonic_start(key);
  if (life.fork_ns) {
    if (*life.fork_ns + kClockJitterNs < start) return std::nullopt;
    const uint64_t delay = *life.fork_ns + kClockJitterNs - start;
    return delay < ProcessMaps::kForkDelayNs ? std::optional<uint64_t>(2 + delay) : std::nullopt;
  }
  if (life.seen_ns + kClockJitterNs < start) return std::nullopt;
  return UINT64_MAX;
}

struct Reading {
  std::vector<MapsLine> lines;
  std::string root_link, executable, command_line;
};

Reading read_all_of(const LiveProcess& process) {
  return {process.executable_maps(), process.root_link(), process.executable(),
          process.command_line()};
}

// False if the process has exec'ed and nobody told us yet: its maps are another image's.
bool is_program_of(const Reading& reading, const Image& image) {
  if (image.executable.empty() || reading.executable.empty()) return true;
  const std::string_view known = without_deleted_mark(image.executable);
  std::string_view now = without_deleted_mark(reading.executable);
  if (now == known) return true;
  if (!now.starts_with(reading.root_link)) return false;
  now.remove_prefix(reading.root_link.size());
  return now == known;
}

// The image in force at that time: the last that had begun, else the first.
size_t image_at(const Life& life, uint64_t time_ns) {
  size_t index = life.images.size() - 1;
  while (index > 0 && life.images[index]->begin_ns > time_ns) --index;
  return index;
}

Image& insert_image(Life& life, size_t at, uint32_t exec_id, uint64_t begin_ns) {
  auto image = std::make_unique<Image>();
  image->exec_id = exec_id;
  image->begin_ns = begin_ns;
  return **life.images.insert(life.images.begin() + static_cast<std::ptrdiff_t>(at),
                              std::move(image));
}

}  // namespace

uint64_t boottime_lead_ns() {
  const uint64_t monotonic = monotonic_ns();
  return clock_ns(CLOCK_BOOTTIME) - monotonic;
}

Mappings& Image::own_mappings() {
  if (mappings.use_count() > 1) mappings = std::make_shared<Mappings>(*mappings);
  return *mappings;
}

ProcessMaps::ProcessMaps(Roots& roots, FileWorker& worker) : roots_(roots), worker_(worker) {}

Life& ProcessMaps::add_life(uint32_t pid) {
  if (births_.size() >= kLivesMax) drop_oldest();
  births_.push_back(pid);
  auto life = std::make_unique<Life>();
  life->pid = pid;
  life->images.push_back(std::make_unique<Image>());
  auto& lives = lives_[pid];
  lives.push_back(std::move(life));
  return *lives.back();
}

void ProcessMaps::drop_oldest() {
  const auto found = lives_.find(births_.front());
  births_.pop_front();
  found->second.erase(found->second.begin());
  if (found->second.empty()) lives_.erase(found);
}

Life* ProcessMaps::find_life(const ProcessKey& key) const {
  const auto found = lives_.find(key.pid);
  if (found == lives_.end()) return nullptr;
  Life* best = nullptr;
  uint64_t best_misfit = UINT64_MAX;
  for (const auto& life : found->second) {
    const auto value = misfit(*life, key);
    if (!value || (best != nullptr && *value > best_misfit)) continue;
    best = life.get();
    best_misfit = *value;
  }
  return best;
}

Life& ProcessMaps::life(const ProcessKey& key) {
  Life* life = find_life(key);
  if (life == nullptr) life = &add_life(key.pid);
  life->start_boottime_ns = key.start_boottime_ns;
  return *life;
}

Life& ProcessMaps::current_life(uint32_t pid, uint64_t time_ns) {
  const auto found = lives_.find(pid);
  if (found != lives_.end()) return *found->second.back();
  // It began before we listened. Read at once: it may end before anybody asks.
  Life& life = add_life(pid);
  life.seen_ns = time_ns;
  if (const auto process = LiveProcess::find(pid)) {
    life.start_ticks = process->start_ticks();
    read_from(*process, life.current());
  }
  return life;
}

void ProcessMaps::on_fork(uint32_t parent_pid, uint32_t pid, uint64_t time_ns) {
  if (parent_pid == pid) return;  // a thread
  if (const auto found = lives_.find(pid); found != lives_.end()) {
    // Perhaps it was read from /proc before its fork event came.
    Life& known = *found->second.back();
    if (known.start_boottime_ns && !known.fork_ns) {
      const uint64_t start = monotonic_start({pid, 0, *known.start_boottime_ns});
      if (start <= time_ns + kExecSettleNs && time_ns < start + kForkDelayNs) {
        known.fork_ns = time_ns;
        return;
      }
    }
  }
  const Image& parent = current_life(parent_pid, time_ns).current();
  auto image = std::make_unique<Image>(parent);
  image->begin_ns = time_ns;
  image->read_ns = image->next_read_ns = 0;
  image->anonymous_object = kUnidentified;
  Life& child = add_life(pid);
  child.fork_ns = time_ns;
  child.images.front() = std::move(image);
}

void ProcessMaps::on_exec(uint32_t pid, uint64_t time_ns) {
  Life& life = current_life(pid, time_ns);
  Image& old = life.current();
  if (old.read_ns > time_ns) {
    // What /proc said is already the new image. Of the one before nothing is known, and it must
    // not get the names of this one.
    auto before = std::make_unique<Image>();
    before->begin_ns = old.begin_ns;
    if (life.images.size() < kImagesMax)
      life.images.insert(life.images.end() - 1, std::move(before));
    old.begin_ns = std::max(old.begin_ns, time_ns);
    return;
  }
  auto image = std::make_unique<Image>();
  image->begin_ns = time_ns;
  image->root = old.root;
  if (old.exec_id) image->exec_id = *old.exec_id + 1;
  if (life.images.size() >= kImagesMax) life.images.erase(life.images.begin());
  life.images.push_back(std::move(image));
}

Image& ProcessMaps::on_map(uint32_t pid, Mapping mapping) {
  Life& life = current_life(pid, mapping.from_ns);
  Image& image = *life.images[image_at(life, mapping.from_ns)];
  if (image.executable.empty() && mapping.backing->is_file())
    image.executable = mapping.backing->path;  // exec maps the program first
  image.own_mappings().add(std::move(mapping));
  return image;
}

Image& ProcessMaps::image(const ProcessKey& key, uint64_t time_ns) {
  Life& owner = life(key);
  const auto same_id = [&](const auto& image) { return image->exec_id == key.exec_id; };
  const auto known = std::ranges::find_if(owner.images, same_id);
  if (known != owner.images.end()) return **known;
  const size_t index = image_at(owner, time_ns);
  Image& candidate = *owner.images[index];
  if (!candidate.exec_id) {
    const bool settled = index == 0 || time_ns - candidate.begin_ns >= kExecSettleNs;
    (settled ? candidate.exec_id : candidate.likely_exec_id) = key.exec_id;
    return candidate;
  }
  // An exec that no event told of.
  if (owner.images.size() >= kImagesMax) return candidate;
  const bool later = key.exec_id > *candidate.exec_id;
  return insert_image(owner, later ? index + 1 : index, key.exec_id,
                      later ? time_ns : candidate.begin_ns);
}

Image& ProcessMaps::likely_image(const ProcessKey& key) {
  Life& owner = life(key);
  for (const auto& image : owner.images)
    if (image->exec_id == key.exec_id) return *image;
  Image& current = owner.current();
  if (!current.exec_id) current.likely_exec_id = key.exec_id;
  return current;
}

const Image* ProcessMaps::find_image(const ProcessKey& key) const {
  const Life* owner = find_life(key);
  if (owner == nullptr) return nullptr;
  for (const auto id : {&Image::exec_id, &Image::likely_exec_id})
    for (const auto& image : owner->images)
      if ((*image).*id == key.exec_id) return image.get();
  return nullptr;
}

std::optional<LiveProcess> ProcessMaps::live(const ProcessKey& key, const Image& image) {
  Life& owner = life(key);
  if (&owner != lives_[key.pid].back().get() || &owner.current() != &image) return std::nullopt;
  auto process = LiveProcess::find(key.pid);
  if (!process || process->start_ticks() != key.start_boottime_ns / kNsPerTick) return std::nullopt;
  return process;
}

Image& ProcessMaps::running_image(const LiveProcess& process) {
  const uint64_t now_ns = monotonic_ns();
  Life* life = &current_life(process.pid(), now_ns);
  if (life->start_ticks && *life->start_ticks != process.start_ticks())
    life = &add_life(process.pid());  // the number was used again, and no event told
  life->start_ticks = process.start_ticks();
  Image& image = life->current();
  if (image.read_ns == 0 && image.mappings->live().empty()) refresh(process, image);
  return image;
}

void ProcessMaps::read_maps(const ProcessKey& key, Image& image) {
  if (monotonic_ns() < image.next_read_ns) return;
  const auto process = live(key, image);
  if (process)
    refresh(*process, image);
  else
    image.next_read_ns = monotonic_ns() + kReadPauseNs;
}

void ProcessMaps::refresh(const LiveProcess& process, Image& image) {
  const uint64_t start_ns = monotonic_ns();
  if (start_ns < image.next_read_ns) return;
  read_from(process, image);
  const uint64_t end_ns = monotonic_ns();
  // A process can have so many mappings that reading them all the time would be all that we do.
  image.next_read_ns = end_ns + std::max(kReadPauseNs, kReadShare * (end_ns - start_ns));
}

Mapping ProcessMaps::to_mapping(const MapsLine& line, const std::string& root_prefix,
                                uint64_t from_ns) {
  Mapping mapping;
  mapping.start = line.start;
  mapping.end = line.end;
  mapping.page_offset = line.page_offset;
  mapping.from_ns = from_ns;
  Backing backing;
  backing.path = line.path;
  // /proc prints paths as we see them, events as the process does; a chrooted process differs.
  if (root_prefix.size() > 1 && line.path.starts_with(root_prefix + "/"))
    backing.path.erase(0, root_prefix.size());
  backing.device = makedev(line.device_major, line.device_minor);
  backing.inode = line.inode;
  mapping.backing = backings_.intern(std::move(backing));
  return mapping;
}

void ProcessMaps::read_from(const LiveProcess& process, Image& image) {
  const uint64_t appeared_ns = image.read_ns != 0 ? image.read_ns : image.begin_ns;
  const uint64_t now_ns = monotonic_ns();
  // Reading maps and arguments waits for the lock of the address space, which may be held long.
  const auto reading = worker_.run([process] { return read_all_of(process); });
  // It has exec'ed: nothing was read of this image, or on_exec would take it for the next one.
  if (reading && !is_program_of(*reading, image)) return;
  image.read_ns = now_ns;
  // Nothing for a kernel thread or one that is exiting: then what is known stays.
  if (!reading || reading->lines.empty()) return;
  std::vector<Mapping> mappings;
  for (const MapsLine& line : reading->lines)
    mappings.push_back(to_mapping(line, reading->root_link, appeared_ns));
  image.own_mappings().replace_all(std::move(mappings), now_ns);
  if (!reading->executable.empty()) image.executable = reading->executable;
  if (!reading->command_line.empty()) image.command_line = reading->command_line;
  image.root = roots_.of(process);
}

}  // namespace dwell::symbolize
