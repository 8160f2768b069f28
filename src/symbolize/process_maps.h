// Which mappings did a program image have when a stack of it was taken?
//
// A pid has lives (reuse of the number), a life has images (exec), an image has mappings over time.
// Fed by mapping events (fork, exec, mmap, in order of time) and by readings of /proc; works
// with either alone, less exactly. Events carry no exec id and no start time, so images are told
// apart by time, and a ProcessKey that was matched once is remembered by its exec id.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "symbolize/file_worker.h"
#include "symbolize/live_process.h"
#include "symbolize/mappings.h"
#include "symbolize/object_files.h"

namespace dwell::symbolize {

struct Image {
  uint64_t begin_ns = 0;
  std::optional<uint32_t> exec_id;
  std::optional<uint32_t> likely_exec_id;  // of a stack taken right after the exec event
  // Shared between a process and its forked children until one of them changes.
  std::shared_ptr<Mappings> mappings = std::make_shared<Mappings>();
  std::string executable;
  std::string command_line;
  uint64_t read_ns = 0;       // when /proc was last read for it, 0: never
  uint64_t next_read_ns = 0;  // not before this
  RootId root = Roots::kOwn;
  uint32_t anonymous_object = kUnidentified;  // for code without a file: one per image

  Mappings& own_mappings();
};

// One life of a pid.
struct Life {
  uint32_t pid = 0;
  std::optional<uint64_t> start_boottime_ns;   // exact, from a ProcessKey
  std::optional<uint64_t> start_ticks;         // from /proc
  std::optional<uint64_t> fork_ns;             // from an event, CLOCK_MONOTONIC
  uint64_t seen_ns = UINT64_MAX;               // when an event first named it, CLOCK_MONOTONIC
  std::vector<std::unique_ptr<Image>> images;  // never empty, in order of time

  Image& current() { return *images.back(); }
};

class ProcessMaps {
 public:
  static constexpr size_t kLivesMax = 1 << 15;
  static constexpr size_t kImagesMax = 64;               // of one life; older ones are forgotten
  static constexpr uint64_t kReadPauseNs = 100'000'000;  // between two readings of one image
  static constexpr uint64_t kReadShare = 50;  // a reading may take one part in so many of the time
  // Right after an exec event the kernel's exec id may still be the old one.
  static constexpr uint64_t kExecSettleNs = 1'000'000;
  // The fork event follows the start time that the kernel notes by less than this.
  static constexpr uint64_t kForkDelayNs = 1'000'000'000;

  ProcessMaps(Roots& roots, FileWorker& worker);

  // Mapping events, in order of time.
  void on_fork(uint32_t parent_pid, uint32_t pid, uint64_t time_ns);
  void on_exec(uint32_t pid, uint64_t time_ns);
  // Returns the image that the mapping was added to.
  Image& on_map(uint32_t pid, Mapping mapping);
  // Events were lost: what is known of running processes may be wrong until /proc is read again.
  void on_lost(uint64_t time_ns) { lost_ns_ = time_ns; }
  bool doubts(const Image& image) const { return image.read_ns < lost_ns_; }
  std::shared_ptr<const Backing> intern(Backing backing) {
    return backings_.intern(std::move(backing));
  }

  // The image that `key` names, at that time. Creates it, reading /proc, if it was not known.
  Image& image(const ProcessKey& key, uint64_t time_ns);
  // The image of a key that comes without a time: it may name a program that has exec'ed since, so
  // the answer is not held against it.
  Image& likely_image(const ProcessKey& key);
  const Image* find_image(const ProcessKey& key) const;
  // Reads /proc for the process if it still runs this image and has not been read just before.
  void read_maps(const ProcessKey& key, Image& image);
  // The process, if it still runs and still runs this image.
  std::optional<LiveProcess> live(const ProcessKey& key, const Image& image);

  // The image that a running process has now, /proc read for it if nothing else told of it.
  Image& running_image(const LiveProcess& process);
  // Reads /proc again unless that was done just before.
  void refresh(const LiveProcess& process, Image& image);

  size_t lives() const { return births_.size(); }

 private:
  Life& life(const ProcessKey& key);
  Life* find_life(const ProcessKey& key) const;
  Life& add_life(uint32_t pid);
  Life& current_life(uint32_t pid, uint64_t time_ns);
  void read_from(const LiveProcess& process, Image& image);
  Mapping to_mapping(const MapsLine& line, const std::string& root_prefix, uint64_t from_ns);
  void drop_oldest();

  Roots& roots_;
  FileWorker& worker_;
  Backings backings_;
  uint64_t lost_ns_ = 0;
  std::unordered_map<uint32_t, std::vector<std::unique_ptr<Life>>> lives_;  // by pid, oldest first
  std::deque<uint32_t> births_;  // pids, one per life, oldest first
};

// What to subtract from CLOCK_BOOTTIME to get CLOCK_MONOTONIC: the time spent suspended.
uint64_t boottime_lead_ns();

}  // namespace dwell::symbolize
