// Wires the parts together: kernel symbols, process maps, object table. The recording loop is the
// only caller, on one thread.
#include "symbolize/symbolizer.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "symbolize/demangle.h"
#include "symbolize/kernel_table.h"
#include "symbolize/object_finder.h"
#include "symbolize/object_table.h"
#include "symbolize/process_maps.h"

namespace dwell::symbolize {
namespace {

struct Location {
  ObjectId object = 0;
  bool return_address = false;
  FrameKind kind = FrameKind::kUser;
  uint64_t address = 0;
  auto operator<=>(const Location&) const = default;
};

struct LocationHash {
  size_t operator()(const Location& l) const {
    uint64_t h = (l.address + l.return_address) * 0x9e3779b97f4a7c15ull;
    h ^= (uint64_t{l.object} << 8 | static_cast<uint64_t>(l.kind)) * 0xc2b2ae3d27d4eb4full;
    return static_cast<size_t>(h ^ (h >> 29));
  }
};

class SystemSymbolizer final : public Symbolizer {
 public:
  explicit SystemSymbolizer(const Options& options)
      : options_(options),
        objects_(options, roots_),
        maps_(roots_),
        finder_(objects_, roots_),
        kernel_(objects_, options.kernel) {}

  void poll() override {}
  LocationId locate_user(const ProcessKey& process, uint64_t ip, bool return_address,
                         uint64_t time_ns) override;
  LocationId locate_kernel(uint64_t ip, bool return_address) override;
  void notice_process(const ProcessKey& process) override;
  ProcessInfo process_info(const ProcessKey& process) const override;
  FrameInfo describe(LocationId location) override;
  const ObjectInfo& object(ObjectId object) const override { return objects_.info(object); }
  std::vector<Unresolved> unresolved() const override;
  std::vector<std::string> warnings() const override { return kernel_.warnings(); }

 private:
  LocationId intern(const Location& location);
  void name_user(const Location& location, FrameInfo& frame);

  const Options options_;
  Roots roots_;
  ObjectTable objects_;
  ProcessMaps maps_;
  ObjectFinder finder_;
  KernelTable kernel_;
  std::vector<Location> locations_;
  std::vector<bool> counted_;  // per location: already in unresolved_
  std::unordered_map<Location, LocationId, LocationHash> ids_;
  std::map<ObjectId, uint64_t> unresolved_;
};

LocationId SystemSymbolizer::intern(const Location& location) {
  const auto [at, added] = ids_.try_emplace(location, static_cast<LocationId>(locations_.size()));
  if (added) {
    locations_.push_back(location);
    counted_.push_back(false);
  }
  return at->second;
}

LocationId SystemSymbolizer::locate_user(const ProcessKey& process, uint64_t ip,
                                         bool return_address, uint64_t time_ns) {
  Image& image = maps_.image(process, time_ns);
  // The address of the call decides: what follows it may be another mapping.
  const uint64_t probe = ip - (return_address && ip > 0 ? 1 : 0);
  Mapping* mapping = image.mappings->find(probe, time_ns);
  if (mapping == nullptr || !mapping->held_at(time_ns)) {
    maps_.read_maps(process, image);
    mapping = image.mappings->find(probe, time_ns);
  }
  if (mapping == nullptr) return intern({0, return_address, FrameKind::kUser, ip});
  if (mapping->object == kUnidentified) {
    const auto live = maps_.live(process, image);
    finder_.find(image, *mapping, live ? &*live : nullptr);
  }
  const ObjectId object = mapping->object;
  if (objects_.is_addressed_by_ip(object))
    return intern({object, return_address, FrameKind::kUser, ip});
  const uint64_t offset = probe - mapping->start + mapping->page_offset;
  const uint64_t address = objects_.to_address(object, offset, mapping->page_offset);
  return intern({object, return_address, FrameKind::kUser, address + (ip - probe)});
}

LocationId SystemSymbolizer::locate_kernel(uint64_t ip, bool return_address) {
  return intern(
      {kernel_.object_of(ip - (return_address ? 1 : 0)), return_address, FrameKind::kKernel, ip});
}

void SystemSymbolizer::notice_process(const ProcessKey& process) {
  Image& image = maps_.image(process, monotonic_now_ns());
  maps_.read_maps(process, image);
}

ProcessInfo SystemSymbolizer::process_info(const ProcessKey& process) const {
  const Image* image = maps_.find_image(process);
  if (image == nullptr) return {};
  return {image->executable, image->command_line};
}

void SystemSymbolizer::name_user(const Location& location, FrameInfo& frame) {
  const SymbolTable* symbols = objects_.symbols(location.object);
  if (symbols == nullptr) return;
  const auto match = symbols->find(location.address - (location.return_address ? 1 : 0));
  if (!match) return;
  frame.symbol = match->name;
  frame.function = options_.demangle ? demangle(match->name) : frame.symbol;
  frame.offset = location.address - match->address;
  frame.how = match->how;
}

FrameInfo SystemSymbolizer::describe(LocationId id) {
  const Location location = locations_[id];
  FrameInfo frame;
  frame.object = location.object;
  frame.address = location.address;
  frame.kind = location.kind;
  if (location.kind == FrameKind::kKernel) {
    kernel_.name(location.address, location.return_address, frame);
  } else {
    name_user(location, frame);
  }
  if (frame.how == Resolution::kNone && !counted_[id]) {
    counted_[id] = true;
    ++unresolved_[location.object];
  }
  return frame;
}

std::vector<Unresolved> SystemSymbolizer::unresolved() const {
  std::vector<Unresolved> all;
  for (const auto& [object, frames] : unresolved_) {
    const Excuse& excuse = objects_.excuse(object);
    const bool known = !excuse.reason.empty();
    all.push_back({object, frames, known ? excuse.reason : "no symbol covers the address",
                   known ? excuse.remedy : "none needed: padding, or code without symbols"});
  }
  return all;
}

}  // namespace

Result<std::unique_ptr<Symbolizer>> Symbolizer::create(const Options& options) {
  return std::make_unique<SystemSymbolizer>(options);
}

}  // namespace dwell::symbolize
