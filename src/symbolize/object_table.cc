#include "symbolize/object_table.h"

#include <fcntl.h>

#include <algorithm>

#include "symbolize/symbol_loader.h"
#include "symbolize/unwind_data.h"

namespace dwell::symbolize {
namespace {

struct Naming {
  std::string path;
  ModuleKind kind;
};

// "/memfd:payload (deleted)" is what the kernel calls a file that never had a name.
Naming naming_of(const std::string& path, bool deleted) {
  constexpr std::string_view kMemfd = "/memfd:";
  if (path.starts_with(kMemfd))
    return {std::string(without_deleted_mark(path.substr(1))), ModuleKind::kMemfd};
  if (deleted) return {std::string(without_deleted_mark(path)), ModuleKind::kDeletedFile};
  return {path, ModuleKind::kFile};
}

}  // namespace

ObjectTable::ObjectTable(const Options& options, const Roots& roots, FileWorker& worker)
    : options_(options), roots_(roots), worker_(worker) {
  Entry unknown;
  unknown.info.path = "[unknown]";
  unknown.tried = true;
  unknown.excuse = {"the address lies in no executable mapping that was seen",
                    "the process may have ended before its maps were read; start dwell first"};
  entries_.push_back(std::move(unknown));
  if (options.unwind_cache.empty()) return;
  // Without a cache everything works, a little later.
  if (auto cache = TableCache::open(options.unwind_cache)) unwind_cache_ = std::move(*cache);
}

ObjectId ObjectTable::add_entry(Entry entry) {
  if (entries_.size() >= kObjectsMax) return 0;
  entries_.push_back(std::move(entry));
  return static_cast<ObjectId>(entries_.size() - 1);
}

ObjectId ObjectTable::add_file(OpenedFile file, const std::string& path, RootId root) {
  if (const auto known = by_identity_.find(file.identity); known != by_identity_.end()) {
    if (!entries_[known->second].fd) keep_open(known->second, std::move(file.fd));
    return known->second;
  }
  Entry entry;
  const Naming naming = naming_of(path, file.deleted);
  entry.info.path = naming.path;
  entry.info.kind = naming.kind;
  entry.identity = file.identity;
  entry.root = root;
  entry.is_file = true;
  entry.segments = std::move(file.elf.segments);
  entry.info.build_id = file.elf.build_id;
  if (!file.elf.failure.empty()) {
    entry.tried = true;
    entry.excuse = {file.elf.failure, "none: the file holds no symbols in ELF form"};
  }
  const auto build = std::pair(entry.info.build_id, file.identity.bytes);
  if (!build.first.empty()) {
    if (const auto known = by_build_id_.find(build); known != by_build_id_.end()) {
      by_identity_[file.identity] = known->second;
      return known->second;
    }
  }
  const ObjectId id = add_entry(std::move(entry));
  if (id == 0) return 0;
  by_identity_[file.identity] = id;
  if (!build.first.empty()) by_build_id_[build] = id;
  keep_open(id, std::move(file.fd));
  return id;
}

ObjectId ObjectTable::add_named(const std::string& name, ModuleKind kind,
                                const std::string& build_id) {
  const auto key = std::pair(name, kind);
  if (const auto known = by_name_.find(key); known != by_name_.end()) return known->second;
  const ObjectId id = add_anonymous(name, kind);
  if (id == 0) return 0;
  entries_[id].info.build_id = build_id;
  by_name_[key] = id;
  return id;
}

ObjectId ObjectTable::add_anonymous(const std::string& name, ModuleKind kind) {
  Entry entry;
  entry.info.path = name;
  entry.info.kind = kind;
  entry.tried = true;
  return add_entry(std::move(entry));
}

ObjectId ObjectTable::add_image(const std::string& name, std::string image) {
  const auto elf = ElfFile::read(FileBytes::of_memory(image));
  if (!elf) return add_named(name, ModuleKind::kVdso);
  const auto build = std::pair(elf->build_id(), uint64_t{image.size()});
  if (const auto known = by_build_id_.find(build); known != by_build_id_.end())
    return known->second;
  Entry entry;
  entry.info = {name, elf->build_id(), ModuleKind::kVdso};
  entry.segments = elf->segments();
  entry.image = std::move(image);
  const ObjectId id = add_entry(std::move(entry));
  if (id != 0) by_build_id_[build] = id;
  return id;
}

uint64_t ObjectTable::to_address(ObjectId object, uint64_t file_offset,
                                 uint64_t page_offset) const {
  return to_virtual_address(entries_[object].segments, file_offset, page_offset)
      .value_or(file_offset);
}

std::optional<uint64_t> ObjectTable::bias(ObjectId object, uint64_t start,
                                          uint64_t page_offset) const {
  constexpr uint64_t kPageMask = ~uint64_t{4095};
  const LoadSegment* best = nullptr;
  for (const LoadSegment& segment : entries_[object].segments) {
    const uint64_t first = segment.offset & kPageMask;
    if (!segment.executable || page_offset < first ||
        page_offset >= segment.offset + segment.file_bytes)
      continue;
    if (best == nullptr || first == page_offset) best = &segment;
  }
  if (best == nullptr) return std::nullopt;
  return start - page_offset + best->offset - best->address;
}

std::function<Result<unwind::Table>()> ObjectTable::unwind_task(ObjectId object) {
  const Entry& entry = entries_[object];
  if (entry.segments.empty()) return nullptr;
  if (!entry.is_file) {
    return [image = entry.image] { return compile_unwind_table(FileBytes::of_memory(image)); };
  }
  if (!entry.fd && !reopen(object)) return nullptr;
  auto file = std::make_shared<Fd>(fcntl(entry.fd.get(), F_DUPFD_CLOEXEC, 0));
  return [file, path = entry.info.path, cache = unwind_cache_,
          target_root = roots_.share(entry.root), own_root = roots_.share(Roots::kOwn),
          debug_dir = options_.debug_dir]() -> Result<unwind::Table> {
    DWELL_ASSIGN(const FileBytes bytes, FileBytes::of_file(file->get(), path));
    const DebugPlaces debug{target_root->get(), own_root->get(), debug_dir};
    return compile_unwind_table(bytes, cache.get(), {path, debug});
  };
}

Fd ObjectTable::duplicate_file(ObjectId object) {
  const Entry& entry = entries_[object];
  if (!entry.is_file || (!entry.fd && !reopen(object))) return Fd();
  return Fd(fcntl(entry.fd.get(), F_DUPFD_CLOEXEC, 0));
}

bool ObjectTable::is_addressed_by_ip(ObjectId object) const {
  const Entry& entry = entries_[object];
  const ModuleKind kind = entry.info.kind;
  const bool file =
      kind == ModuleKind::kFile || kind == ModuleKind::kDeletedFile || kind == ModuleKind::kMemfd;
  return !file && entry.image.empty();
}

void ObjectTable::set_kind(ObjectId object, ModuleKind kind, const std::string& path) {
  entries_[object].info.kind = kind;
  entries_[object].info.path = path;
}

void ObjectTable::keep_open(ObjectId object, Fd fd) {
  if (open_.size() >= options_.open_files_max) close_oldest();
  entries_[object].fd = std::move(fd);
  open_.push_front(object);
  entries_[object].open_at = open_.begin();
}

void ObjectTable::close_oldest() {
  if (open_.empty()) return;
  // A deleted file cannot be opened again: close another one if there is any.
  const auto replaceable = [&](ObjectId id) {
    return entries_[id].info.kind == ModuleKind::kFile || entries_[id].tried;
  };
  auto victim = std::find_if(open_.rbegin(), open_.rend(), replaceable);
  const ObjectId id = victim == open_.rend() ? open_.back() : *victim;
  entries_[id].fd.reset();
  open_.erase(entries_[id].open_at);
}

bool ObjectTable::reopen(ObjectId object) {
  Entry& entry = entries_[object];
  for (const RootId root : {entry.root, Roots::kOwn}) {
    auto file = open_patiently(worker_, entry.info.path,
                               [path = entry.info.path, from = roots_.share(root)] {
                                 return open_in_root(from->get(), path);
                               });
    if (!file) continue;
    const auto known = by_identity_.find(file->identity);
    if (known == by_identity_.end() || known->second != object) continue;
    keep_open(object, std::move(file->fd));
    return true;
  }
  return false;
}

void ObjectTable::want(ObjectId object, uint64_t address) {
  Entry& entry = entries_[object];
  if (entry.segments.empty() || entry.partial_reads >= kPartialReadsMax) return;
  entry.wanted.push_back(address);
  entry.late = entry.late || entry.tried;
}

const SymbolTable* ObjectTable::symbols(ObjectId object) {
  Entry& entry = entries_[object];
  if (!entry.tried || entry.late) load(object);
  if (entry.symbols != nullptr) loaded_.splice(loaded_.begin(), loaded_, entry.loaded_at);
  return entry.symbols.get();
}

// Owns all it needs: it may go on after us.
std::function<LoadedSymbols()> ObjectTable::load_task(const Entry& entry) const {
  struct Input {
    Fd file;
    std::shared_ptr<const Fd> target_root, own_root;
    std::string image, path, debug_dir;
    bool is_file;
    size_t memory_max;
    bool whole;
    std::vector<uint64_t> wanted;
  };
  auto input = std::make_shared<Input>();
  if (entry.is_file) input->file = Fd(fcntl(entry.fd.get(), F_DUPFD_CLOEXEC, 0));
  input->target_root = roots_.share(entry.root);
  input->own_root = roots_.share(Roots::kOwn);
  input->image = entry.image;
  input->path = entry.info.path;
  input->debug_dir = options_.debug_dir;
  input->is_file = entry.is_file;
  input->memory_max = options_.symbol_bytes_max;
  input->whole = entry.wanted.empty() || entry.partial_reads >= kPartialReadsMax;
  if (!input->whole) input->wanted = entry.wanted;
  return [input]() -> LoadedSymbols {
    const auto bytes = input->is_file ? FileBytes::of_file(input->file.get(), input->path)
                                      : Result<FileBytes>(FileBytes::of_memory(input->image));
    if (!bytes) return {nullptr, bytes.error().message, ""};
    const DebugPlaces places{input->target_root->get(), input->own_root->get(), input->debug_dir};
    if (input->whole) return load_symbols(*bytes, input->path, places, input->memory_max);
    std::ranges::sort(input->wanted);
    return load_symbols(*bytes, input->path, places, input->memory_max, input->wanted);
  };
}

void ObjectTable::load(ObjectId object) {
  Entry& entry = entries_[object];
  entry.tried = true;
  if (entry.late && ++entry.partial_reads >= kPartialReadsMax) entry.wanted = {};
  entry.late = false;
  if (entry.is_file && !entry.fd && !reopen(object)) {
    if (entry.symbols != nullptr) return;  // what was read before is better than nothing
    entry.excuse = {"the file was closed to save file descriptors and is gone by now",
                    "raise the limit of open files"};
    return;
  }
  const int hurried_past = worker_.hurried_past();
  auto loaded = worker_.run(load_task(entry), kLoadPatience);
  if (!loaded && worker_.hurried_past() > hurried_past)
    loaded.emplace(nullptr, "no time was left to read the file after the stop",
                   "record again: it may be in memory by then");
  if (!loaded) loaded.emplace(nullptr, "reading the file took too long", "is its mount alive?");
  ++tables_loaded_;
  if (loaded->table == nullptr && entry.symbols != nullptr) return;
  drop_symbols(entry);
  entry.tried = true;
  entry.excuse = {loaded->reason, loaded->remedy};
  entry.symbols = std::move(loaded->table);
  if (entry.symbols == nullptr) return;
  symbol_bytes_ += entry.symbols->memory_bytes();
  loaded_.push_front(object);
  entry.loaded_at = loaded_.begin();
  fit_budget(object);
}

void ObjectTable::drop_symbols(Entry& entry) {
  if (entry.symbols == nullptr) return;
  symbol_bytes_ -= entry.symbols->memory_bytes();
  entry.symbols.reset();
  entry.tried = false;
  loaded_.erase(entry.loaded_at);
}

void ObjectTable::fit_budget(ObjectId newest) {
  while (symbol_bytes_ > options_.symbol_bytes_max && loaded_.back() != newest)
    drop_symbols(entries_[loaded_.back()]);
}

}  // namespace dwell::symbolize
