// Wires the parts together: kernel symbols, process maps, object table. The recording loop is the
// only caller, on one thread.
#include "symbolize/symbolizer.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/clock.h"
#include "symbolize/demangle.h"
#include "symbolize/jit_maps.h"
#include "symbolize/kernel_table.h"
#include "symbolize/locations.h"
#include "symbolize/mapping_events.h"
#include "symbolize/object_finder.h"
#include "symbolize/object_table.h"
#include "symbolize/process_maps.h"
#include "symbolize/python_frames.h"
#include "symbolize/python_programs.h"
#include "symbolize/table_loader.h"

namespace dwell::symbolize {
namespace {

class SystemSymbolizer final : public Symbolizer {
 public:
  explicit SystemSymbolizer(const Options& options)
      : options_(options),
        worker_(options.hurried),
        objects_(options, roots_, worker_),
        maps_(roots_, worker_),
        finder_(objects_, roots_, worker_),
        jit_(objects_, roots_, worker_, options_),
        kernel_(objects_, options.kernel),
        python_programs_(objects_, worker_),
        python_frames_(worker_) {
    if (options.follow_mappings) follow_mappings();
  }

  void poll() override;
  LocationId locate_user(const ProcessKey& process, uint64_t ip, bool return_address,
                         uint64_t time_ns) override;
  LocationId locate_kernel(uint64_t ip, bool return_address) override;
  std::vector<LocationId> locate_python(const ProcessKey& process, uint32_t layout,
                                        std::span<const uint64_t> words, uint64_t time_ns,
                                        uint64_t& unread) override;
  void notice_process(const ProcessKey& process) override;
  ProcessInfo process_info(const ProcessKey& process) const override;
  void load_unwind_tables(unwind::LoadedTables& tables) override {
    unwinding_.emplace(tables, objects_, finder_, maps_, roots_,
                       options_.python ? &python_programs_ : nullptr);
    wake_by(unwinding_->compiled_fd());
  }
  int events_fd() const override { return wakes_.get(); }
  bool unwinding_changed() override { return unwinding_ && unwinding_->take_changed(); }
  void unwind_process(uint32_t pid) override {
    if (unwinding_) unwinding_->want(pid);
  }
  void unwind_all_processes() override {
    if (unwinding_) unwinding_->want_all();
  }
  void doubt_unwinding(uint32_t pid) override {
    if (unwinding_) unwinding_->doubt(pid, monotonic_ns());
  }
  bool settle_unwinding(std::chrono::milliseconds patience) override {
    poll();
    return !unwinding_ || unwinding_->settle(patience);
  }
  FrameInfo describe(LocationId location) override;
  const ObjectInfo& object(ObjectId object) const override { return objects_.info(object); }
  std::vector<Unresolved> unresolved() const override;
  std::vector<std::string> warnings() const override;

 private:
  static constexpr int kOpensPerPoll = 64;  // files of processes that nobody asked for yet

  void wake_by(int fd);
  void follow_mappings();
  void take_events();
  void tell_unwinding(const MappingEvent& event);
  void apply(const MappingEvent& event);
  void open_ahead(uint32_t pid, Image& image, const Mapping& mapping);
  ObjectId object_of(const ProcessKey& process, Image& image, Mapping& mapping);
  void name_jit(const Location& location, FrameInfo& frame);
  void set_name(std::string_view symbol, uint64_t start, Resolution how, FrameInfo& frame);
  LocationId intern(const Location& location);
  void name_user(const Location& location, FrameInfo& frame);
  void name_python(const Location& location, FrameInfo& frame) const;

  const Options options_;
  FileWorker worker_;
  Roots roots_;
  ObjectTable objects_;
  ProcessMaps maps_;
  ObjectFinder finder_;
  JitMaps jit_;
  KernelTable kernel_;
  PythonPrograms python_programs_;
  PythonFrames python_frames_;
  std::optional<TableLoader> unwinding_;
  std::optional<MappingEvents> events_;
  Fd wakes_;               // epoll of what poll() takes in
  std::string no_events_;  // why there are none
  uint64_t lost_events_ = 0;
  int opens_left_ = 0;
  Locations locations_;
  std::vector<bool> counted_;  // per location: already in unresolved_
  std::map<ObjectId, uint64_t> unresolved_;
};

void SystemSymbolizer::follow_mappings() {
  auto events = MappingEvents::open();
  if (events) {
    events_.emplace(std::move(*events));
    wake_by(events_->fd());
    return;
  }
  no_events_ = events.error().message +
               ": names of processes that end within a moment may be missing; run as root "
               "(CAP_PERFMON) or set kernel.perf_event_paranoid to -1";
}

// Without it poll() is called in time all the same, only not at once.
void SystemSymbolizer::wake_by(int fd) {
  if (!wakes_) wakes_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  epoll_event event = {};
  event.events = EPOLLIN;
  if (fd >= 0) epoll_ctl(wakes_.get(), EPOLL_CTL_ADD, fd, &event);
}

void SystemSymbolizer::poll() {
  if (events_) take_events();
  if (unwinding_) unwinding_->update(monotonic_ns());
}

void SystemSymbolizer::take_events() {
  opens_left_ = kOpensPerPoll;
  for (const MappingEvent& event : events_->take()) {
    apply(event);
    if (unwinding_) tell_unwinding(event);
  }
  if (const uint64_t lost = events_->lost(); lost != lost_events_) {
    lost_events_ = lost;
    maps_.on_lost(monotonic_ns());
  }
}

void SystemSymbolizer::tell_unwinding(const MappingEvent& event) {
  if (event.kind == MappingEvent::Kind::kFork) unwinding_->on_fork(event.parent_pid, event.pid);
  if (event.kind == MappingEvent::Kind::kExec) unwinding_->on_exec(event.pid, monotonic_ns());
  if (event.kind == MappingEvent::Kind::kMap) unwinding_->on_map(event.pid);
}

void SystemSymbolizer::apply(const MappingEvent& event) {
  switch (event.kind) {
    case MappingEvent::Kind::kFork:
      return maps_.on_fork(event.parent_pid, event.pid, event.time_ns);
    case MappingEvent::Kind::kExec:
      return maps_.on_exec(event.pid, event.time_ns);
    case MappingEvent::Kind::kMap: {
      Mapping mapping = event.mapping;
      mapping.backing = maps_.intern(event.backing);
      return open_ahead(event.pid, maps_.on_map(event.pid, mapping), mapping);
    }
    case MappingEvent::Kind::kProgramLoaded:
      return kernel_.on_program_loaded(event.address, event.bytes, event.name);
  }
}

// The process may end, and its files vanish, before an address of it is located.
void SystemSymbolizer::open_ahead(uint32_t pid, Image& image, const Mapping& added) {
  Mapping* mapping = image.mappings->find(added.start, added.from_ns);
  if (mapping == nullptr || mapping->object != kUnidentified || !mapping->backing->is_file())
    return;
  if (const auto known = finder_.seen(*mapping->backing)) {
    mapping->object = *known;
    return;
  }
  if (opens_left_-- <= 0) return;
  const auto process = LiveProcess::find(pid);
  if (process) image.root = roots_.of(*process);
  finder_.find(image, *mapping, process ? &*process : nullptr);
}

LocationId SystemSymbolizer::intern(const Location& location) {
  const auto [id, is_new] = locations_.intern(location);
  if (is_new) {
    counted_.push_back(false);
    if (location.kind == FrameKind::kUser && !location.is_python)
      objects_.want(location.object, location.lookup_address());
  }
  return id;
}

LocationId SystemSymbolizer::locate_user(const ProcessKey& process, uint64_t ip,
                                         bool return_address, uint64_t time_ns) {
  Image& image = maps_.image(process, time_ns);
  // The address of the call decides: what follows it may be another mapping.
  const uint64_t probe = ip - (return_address && ip > 0 ? 1 : 0);
  // Once at first sight: only /proc tells arguments, and mappings older than our events.
  if (image.read_ns == 0 || maps_.doubts(image)) maps_.read_maps(process, image);
  Mapping* mapping = image.mappings->find(probe, time_ns);
  if (mapping == nullptr || !mapping->held_at(time_ns)) {
    maps_.read_maps(process, image);
    mapping = image.mappings->find(probe, time_ns);
  }
  if (mapping == nullptr)
    return intern({finder_.find_unmapped(ip), return_address, FrameKind::kUser, ip});
  const ObjectId object = object_of(process, image, *mapping);
  if (objects_.is_addressed_by_ip(object))
    return intern({object, return_address, FrameKind::kUser, ip});
  const uint64_t offset = probe - mapping->start + mapping->page_offset;
  const uint64_t address = objects_.to_address(object, offset, mapping->page_offset);
  return intern({object, return_address, FrameKind::kUser, address + (ip - probe)});
}

ObjectId SystemSymbolizer::object_of(const ProcessKey& process, Image& image, Mapping& mapping) {
  if (mapping.object != kUnidentified) return mapping.object;
  if (image.anonymous_object != kUnidentified && is_anonymous(*mapping.backing) &&
      !jit_.wants_process(image.anonymous_object))
    return image.anonymous_object;
  const auto live = maps_.live(process, image);
  if (live) image.root = roots_.of(*live);  // an event cannot tell that the root changed
  const ObjectId object = finder_.find(image, mapping, live ? &*live : nullptr);
  if (live && object == image.anonymous_object && jit_.wants_process(object))
    jit_.look_for_map(object, *live, image.root);
  return object;
}

LocationId SystemSymbolizer::locate_kernel(uint64_t ip, bool return_address) {
  const auto place = kernel_.place_of(ip - (return_address ? 1 : 0));
  return intern({place.object, return_address, FrameKind::kKernel, ip, place.remembered});
}

std::vector<LocationId> SystemSymbolizer::locate_python(const ProcessKey& process, uint32_t layout,
                                                        std::span<const uint64_t> words,
                                                        uint64_t time_ns, uint64_t& unread) {
  std::vector<LocationId> locations;
  const python::ObjectOffsets* offsets = python_programs_.offsets(layout);
  std::vector<PythonFrames::Position> positions(words.size());
  if (offsets != nullptr) {
    const auto live = maps_.live(process, maps_.image(process, time_ns));
    positions = python_frames_.locate(process, live ? &*live : nullptr, *offsets, words);
  }
  for (const auto& [function, line] : positions) {
    const bool is_read = function != PythonFrames::kUnread;
    unread += is_read ? 0 : 1;
    const ObjectId object =
        is_read ? objects_.add_named(python_frames_.function(function).filename, ModuleKind::kFile)
                : 0;
    const FrameKind kind = is_read ? FrameKind::kUser : FrameKind::kPlaceholder;
    locations.push_back(intern({object, false, kind, line, function, true}));
  }
  return locations;
}

void SystemSymbolizer::notice_process(const ProcessKey& process) {
  // Without events the key itself is all that tells of an exec.
  Image& image = events_ ? maps_.likely_image(process) : maps_.image(process, monotonic_ns());
  maps_.read_maps(process, image);
}

ProcessInfo SystemSymbolizer::process_info(const ProcessKey& process) const {
  const Image* image = maps_.find_image(process);
  if (image == nullptr) return {};
  return {image->executable, image->command_line};
}

void SystemSymbolizer::set_name(std::string_view symbol, uint64_t start, Resolution how,
                                FrameInfo& frame) {
  frame.symbol = symbol;
  frame.function = options_.demangle ? demangle(symbol) : frame.symbol;
  frame.offset = frame.address - start;
  frame.how = how;
}

void SystemSymbolizer::name_jit(const Location& location, FrameInfo& frame) {
  const auto match = jit_.find(location.object, location.lookup_address());
  if (match) set_name(match->code.name, match->code.address, match->how, frame);
}

void SystemSymbolizer::name_user(const Location& location, FrameInfo& frame) {
  const ModuleKind kind = objects_.info(location.object).kind;
  if (kind == ModuleKind::kAnonymous || kind == ModuleKind::kJit) return name_jit(location, frame);
  const SymbolTable* symbols = objects_.symbols(location.object);
  if (symbols == nullptr) return;
  const auto match = symbols->find(location.lookup_address());
  if (match) set_name(match->name, match->address, match->how, frame);
}

void SystemSymbolizer::name_python(const Location& location, FrameInfo& frame) const {
  frame.address = 0;
  frame.how = Resolution::kPlaceholder;
  frame.function = "[Python function not read]";
  if (location.kind == FrameKind::kPlaceholder) return;
  frame.how = Resolution::kPython;
  frame.function = python_frames_.function(location.remembered).name;
  frame.line = static_cast<uint32_t>(location.address);
}

FrameInfo SystemSymbolizer::describe(LocationId id) {
  const Location location = locations_[id];
  FrameInfo frame;
  frame.object = location.object;
  frame.address = location.address;
  frame.kind = location.kind;
  if (location.kind == FrameKind::kKernel) {
    kernel_.name(location.address, location.return_address, location.remembered, frame);
  } else if (location.is_python) {
    name_python(location, frame);
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

std::vector<std::string> SystemSymbolizer::warnings() const {
  std::vector<std::string> all = kernel_.warnings();
  std::ranges::copy(python_programs_.warnings(), std::back_inserter(all));
  if (!no_events_.empty()) all.push_back(no_events_);
  if (worker_.stuck() > 0)
    all.push_back(
        fmt::format("{} files or processes did not answer in time and were given up; a "
                    "dead network or FUSE mount?",
                    worker_.stuck()));
  if (worker_.hurried_past() > 0)
    all.push_back(
        fmt::format("{} times there was no time left to read a file after the stop: the disk is "
                    "busy; some user frames may lack names",
                    worker_.hurried_past()));
  if (lost_events_ > 0)
    all.push_back(
        fmt::format("{} mapping events were lost: the machine started programs faster "
                    "than they were read; some user frames may lack names",
                    events_->lost()));
  return all;
}

}  // namespace

Result<std::unique_ptr<Symbolizer>> Symbolizer::create(const Options& options) {
  return std::make_unique<SystemSymbolizer>(options);
}

}  // namespace dwell::symbolize
