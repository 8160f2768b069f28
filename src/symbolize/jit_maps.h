// Names of code without a file: finds, opens and follows the perf-PID.map of each such program.
//
// The map is opened while the process lives and kept open, so that it is readable after its
// container is gone; it is read when a name is asked for, and its new tail again later. Only a
// regular file of the target's user or of root is believed, and no link is followed to it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "symbolize/live_process.h"
#include "symbolize/object_files.h"
#include "symbolize/object_table.h"
#include "symbolize/perf_map.h"

namespace dwell::symbolize {

class JitMaps {
 public:
  static constexpr uint64_t kFileMax = uint64_t{256} << 20;
  static constexpr uint64_t kLookPauseNs = 500'000'000;  // between two looks at one map
  static constexpr size_t kMapsMax = 1024;

  JitMaps(ObjectTable& objects, const Roots& roots, FileWorker& worker, const Options& options)
      : objects_(objects), roots_(roots), worker_(worker), options_(options) {}

  // True if it is time to look for the map of this object's process (again).
  bool wants_process(ObjectId object) const;
  void look_for_map(ObjectId object, const LiveProcess& process, RootId root);
  std::optional<PerfMap::Match> find(ObjectId object, uint64_t address);

 private:
  struct Place {
    RootId root;
    std::string path;
  };
  struct Followed {
    std::vector<Place> places;
    uint32_t user = 0;
    std::string name;  // for messages
    uint64_t looked_ns = 0;
    std::shared_ptr<Fd> fd;  // shared with a reader that may hang
    FileIdentity identity;   // device and inode of fd
    uint64_t read_bytes = 0;
    PerfMap map;
  };
  void open_best(ObjectId object, Followed& followed);
  bool may_read_more(const Followed& followed) const;
  void read_on(ObjectId object, Followed& followed);
  void excuse(ObjectId object, const std::string& reason);
  std::vector<Place> places_of(const LiveProcess& process, RootId root) const;

  ObjectTable& objects_;
  const Roots& roots_;
  FileWorker& worker_;
  const Options& options_;
  std::unordered_map<ObjectId, Followed> followed_;
  size_t map_bytes_ = 0;
};

}  // namespace dwell::symbolize
