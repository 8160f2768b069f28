// From a mapping to the object behind it: opens the very file that is mapped, or says why not.
// Called by the symbolizer when a first address of a mapping is located, and ahead of that for
// files never seen before, while their process lives.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "symbolize/file_worker.h"
#include "symbolize/live_process.h"
#include "symbolize/object_table.h"
#include "symbolize/process_maps.h"

namespace dwell::symbolize {

// Code that no file holds.
bool is_anonymous(const Backing& backing);

class ObjectFinder {
 public:
  ObjectFinder(ObjectTable& objects, const Roots& roots, FileWorker& worker)
      : objects_(objects), roots_(roots), worker_(worker) {}

  // Notes it in mapping.object, but for anonymous code. `process` is nullptr once it has ended.
  ObjectId find(Image& image, Mapping& mapping, const LiveProcess* process);
  // Of an address in no mapping that was seen: the unknown object, or the kernel's page of probes,
  // which appears in a process without an event.
  ObjectId find_unmapped(uint64_t address);
  // The object of a file that was identified before, if its backing tells it apart for certain.
  std::optional<ObjectId> seen(const Backing& backing) const;

 private:
  static constexpr size_t kSeenMax = 1 << 16;

  void remember(const Backing& backing, ObjectId object);
  ObjectId find_file(Image& image, Mapping& mapping, const LiveProcess* process);
  ObjectId find_vdso(const Mapping& mapping, const LiveProcess* process);
  ObjectId anonymous(Image& image);
  ObjectId uprobes();
  std::optional<ObjectId> open_mapped(const Image& image, const Mapping& mapping,
                                      const LiveProcess& process);
  std::optional<ObjectId> open_program(const Image& image, const Mapping& mapping,
                                       const LiveProcess& process);
  std::optional<ObjectId> open_by_path(const Image& image, const Mapping& mapping, bool alive);
  ObjectId give_up(const Mapping& mapping, bool alive);

  ObjectTable& objects_;
  const Roots& roots_;
  FileWorker& worker_;
  std::string failure_;  // of the last attempt
  std::unordered_map<std::string, ObjectId> seen_;
};

}  // namespace dwell::symbolize
