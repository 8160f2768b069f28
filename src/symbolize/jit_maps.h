// Names of code without a file: finds, opens and follows what each such program writes about its
// code, a jit-PID.dump (which it maps, so that profilers find it) or a perf-PID.map.
//
// The files are opened while the process lives and kept open, so that they are readable after its
// container is gone; they are read when a name is asked for, and their new tails again later. Only
// a regular file is believed, of the target's user or of root unless the target has it mapped, and
// no link is followed to it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/fd.h"
#include "symbolize/jit_dump.h"
#include "symbolize/live_process.h"
#include "symbolize/object_files.h"
#include "symbolize/object_table.h"
#include "symbolize/perf_map.h"

namespace dwell::symbolize {

// A name, and from which kind of file.
struct JitMatch {
  CodeRanges::Match code;
  Resolution how = Resolution::kNone;
};

class JitMaps {
 public:
  static constexpr uint64_t kLookPauseNs = 500'000'000;  // between two looks at one map
  static constexpr size_t kMapsMax = 1024;
  static constexpr int kDumpsTried = 4;  // of one process

  JitMaps(ObjectTable& objects, const Roots& roots, FileWorker& worker, const Options& options)
      : objects_(objects), roots_(roots), worker_(worker), options_(options) {}

  // True if it is time to look for the files of this object's process (again).
  bool wants_process(ObjectId object) const;
  void look_for_map(ObjectId object, const LiveProcess& process, RootId root);
  std::optional<JitMatch> find(ObjectId object, uint64_t address);

 private:
  struct Place {
    RootId root;
    std::string path;
  };
  template <typename Names>  // PerfMap or JitDump
  struct Followed {
    std::string path;         // for messages
    std::shared_ptr<Fd> fd;   // shared with a reader that may hang
    FileIdentity identity;    // device and inode of fd
    uint64_t file_bytes = 0;  // when it was last read
    bool whole = false;       // nothing was left unread then
    Names names;

    bool open() const { return fd != nullptr; }
    void follow(OpenedFile file, std::string its_path);
  };
  struct Program {
    std::vector<Place> places;  // where a perf map may be
    uint32_t user = 0;
    uint64_t looked_ns = 0;
    Followed<PerfMap> map;
    Followed<JitDump> dump;

    size_t memory_bytes() const { return map.names.memory_bytes() + dump.names.memory_bytes(); }
  };
  void open_map(ObjectId object, Program& program);
  void open_dump(ObjectId object, Program& program, const LiveProcess& process);
  template <typename Names>
  void read_on(Followed<Names>& followed);
  void read_all(ObjectId object, Program& program);
  void excuse(ObjectId object, const Program& program);
  std::vector<Place> places_of(const LiveProcess& process, RootId root) const;

  ObjectTable& objects_;
  const Roots& roots_;
  FileWorker& worker_;
  const Options& options_;
  std::unordered_map<ObjectId, Program> programs_;
  size_t memory_bytes_ = 0;
};

}  // namespace dwell::symbolize
