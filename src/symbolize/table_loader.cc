#include "symbolize/table_loader.h"

#include <dirent.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/clock.h"
#include "base/text.h"

namespace dwell::symbolize {
namespace {

std::vector<uint32_t> running_pids() {
  std::vector<uint32_t> pids;
  const std::unique_ptr<DIR, int (*)(DIR*)> proc(opendir("/proc"), closedir);
  while (proc != nullptr) {
    const dirent* entry = readdir(proc.get());
    if (entry == nullptr) break;
    if (const auto pid = parse_u32(entry->d_name)) pids.push_back(*pid);
  }
  return pids;
}

bool has_ended(uint32_t pid) { return kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH; }

}  // namespace

void TableLoader::change(uint32_t pid, Process& process) {
  if (process.queued) return;
  process.queued = true;
  changed_.push_back(pid);
}

void TableLoader::want(uint32_t pid) {
  if (processes_.size() >= kProcessesMax && !processes_.contains(pid)) return;
  const auto [at, added] = processes_.try_emplace(pid);
  if (added) change(pid, at->second);
}

void TableLoader::want_all() {
  all_ = true;
  for (const uint32_t pid : running_pids()) want(pid);
}

void TableLoader::doubt(uint32_t pid, uint64_t now_ns) {
  const auto known = processes_.find(pid);
  if (known == processes_.end()) return want(pid);
  Process& process = known->second;
  if (now_ns < process.next_refresh_ns) return;
  process.refreshes = std::min(process.refreshes + 1, kRefreshDoublingsMax);
  process.next_refresh_ns = now_ns + (kRefreshPauseNs << process.refreshes);
  const auto live = LiveProcess::find(pid);
  if (!live) return;
  maps_.refresh(*live, maps_.running_image(*live));
  change(pid, process);
}

// The probe gave the child its parent's list. A child that nobody records costs one entry until it
// ends.
void TableLoader::on_fork(uint32_t parent_pid, uint32_t pid) {
  if (!processes_.contains(parent_pid)) {
    if (all_) want(pid);
    return;
  }
  tables_.share(parent_pid, pid);
  if (processes_.size() < kProcessesMax) processes_.try_emplace(pid);
}

void TableLoader::on_exec(uint32_t pid, uint64_t now_ns) {
  tables_.forget_process(pid, now_ns);
  if (all_) want(pid);
}

void TableLoader::on_map(uint32_t pid) {
  if (all_) want(pid);
  const auto known = processes_.find(pid);
  if (known != processes_.end()) change(pid, known->second);
}

void TableLoader::take_compiled(uint64_t now_ns) {
  bool any = false;
  for (CompiledTable& compiled : compiler_.take()) {
    FileTable& file = file_tables_[compiled.object];
    file.state = FileTable::State::kReady;
    if (compiled.table) file.id = tables_.add(*compiled.table, now_ns);
    any = true;
  }
  if (!any) return;
  for (auto& [pid, process] : processes_)
    if (process.lacks_tables) change(pid, process);
}

const TableLoader::FileTable& TableLoader::table_of(ObjectId object) {
  if (object >= file_tables_.size()) file_tables_.resize(object + 1);
  FileTable& file = file_tables_[object];
  if (file.state != FileTable::State::kUnknown) return file;
  auto task = objects_.unwind_task(object);
  if (task == nullptr)
    file.state = FileTable::State::kReady;  // without a table for ever
  else if (compiler_.submit(object, std::move(task)))
    file.state = FileTable::State::kCompiling;
  return file;
}

unwind::ProcessMapping TableLoader::describe(Image& image, Mapping& mapping,
                                             const LiveProcess& live, ListFacts& facts) {
  unwind::ProcessMapping described{mapping.start, mapping.end, 0, unwind::kNoTable};
  const bool is_vdso = mapping.backing->path == "[vdso]";
  if (is_anonymous(*mapping.backing) && !is_vdso) return described;
  const ObjectId object = finder_.find(image, mapping, &live);
  const auto bias = objects_.bias(object, mapping.start, mapping.page_offset);
  if (!bias) return described;
  const FileTable& file = table_of(object);
  facts.lacks_tables = facts.lacks_tables || file.state != FileTable::State::kReady;
  if (python_ != nullptr && facts.python.layout == 0)
    facts.python = python_->place(object, *bias, tables_);
  described.bias = *bias;
  described.table = file.id;
  return described;
}

void TableLoader::write_list(uint32_t pid, uint64_t now_ns) {
  const auto known = processes_.find(pid);
  if (known == processes_.end()) return;
  known->second.queued = false;
  const auto live = LiveProcess::find(pid);
  if (!live) return;  // found out in its turn
  Image& image = maps_.running_image(*live);
  image.root = roots_.of(*live);
  std::vector<unwind::ProcessMapping> mappings;
  ListFacts facts;
  for (Mapping& mapping : image.mappings->live())
    mappings.push_back(describe(image, mapping, *live, facts));
  known->second.lacks_tables = facts.lacks_tables;
  // What did not fit is counted there, and said in the end.
  if (tables_.set_process(pid, live->start_ticks() * kNsPerTick, mappings, now_ns, facts.python))
    wrote_ = true;
}

void TableLoader::forget_ended(uint64_t now_ns) {
  for (size_t i = 0; i < std::min(kLooksPerUpdate, processes_.size()); ++i) {
    auto at = processes_.upper_bound(last_looked_at_);
    if (at == processes_.end()) at = processes_.begin();
    last_looked_at_ = at->first;
    if (!has_ended(at->first)) continue;
    tables_.forget_process(at->first, now_ns);
    processes_.erase(at);
    if (processes_.empty()) return;
  }
}

// A file that is mapped again is compiled again, or found in the cache.
void TableLoader::drop_idle(uint64_t now_ns) {
  if (now_ns < next_drop_ns_) return;
  next_drop_ns_ = now_ns + kDropPauseNs;
  const std::vector<unwind::TableId> dropped = tables_.drop_idle(now_ns);
  if (dropped.empty()) return;
  for (FileTable& file : file_tables_)
    if (std::ranges::binary_search(dropped, file.id)) file = {};
}

void TableLoader::update(uint64_t now_ns) {
  drop_idle(now_ns);
  take_compiled(now_ns);
  for (size_t i = 0; i < kListsPerUpdate && !changed_.empty(); ++i) {
    const uint32_t pid = changed_.front();
    changed_.pop_front();
    write_list(pid, now_ns);
  }
  forget_ended(now_ns);
}

bool TableLoader::settle(std::chrono::milliseconds patience) {
  const uint64_t end_ns = monotonic_ns() + static_cast<uint64_t>(patience.count()) * 1'000'000;
  for (;;) {
    const uint64_t now_ns = monotonic_ns();
    update(now_ns);
    const bool idle = changed_.empty() && compiler_.is_idle();
    if (idle || now_ns >= end_ns) return idle;
    if (changed_.empty()) compiler_.wait(std::chrono::milliseconds((end_ns - now_ns) / 1'000'000));
  }
}

}  // namespace dwell::symbolize
