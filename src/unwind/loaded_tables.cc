#include "unwind/loaded_tables.h"

#include <fmt/format.h>

#include <algorithm>

namespace dwell::unwind {

LoadedTables::LoadedTables(std::unique_ptr<TableMemory> memory)
    : memory_(std::move(memory)),
      rules_(memory_->rules().size()),
      row_places_(static_cast<uint32_t>(memory_->slabs_max() * DWELL_UNWIND_SLAB_ROWS),
                  DWELL_UNWIND_SLAB_ROWS),
      page_places_(static_cast<uint32_t>(memory_->pages().size())),
      mapping_places_(static_cast<uint32_t>(memory_->mappings().size())) {}

// The numbers of a table's own rules among all rules, which the kernel has by then.
std::vector<uint16_t> LoadedTables::renumber(const std::vector<Rule>& rules) {
  std::vector<uint16_t> numbers;
  for (const Rule& rule : rules) numbers.push_back(rules_.number_of(rule));
  const auto kernel = memory_->rules();
  for (; rules_copied_ < std::min(rules_.rules().size(), kernel.size()); ++rules_copied_)
    kernel[rules_copied_] = rules_.rules()[rules_copied_];
  return numbers;
}

// Up to slab `number`: they come in order.
bool LoadedTables::make_slabs(uint32_t number) {
  while (slabs_.size() <= number) {
    auto slab = memory_->make_slab(static_cast<uint32_t>(slabs_.size()));
    if (!slab) {
      failure_ = slab.error().message;
      return false;
    }
    slabs_.push_back(*slab);
  }
  return true;
}

// Copies the rows of one page into one slab.
std::optional<uint32_t> LoadedTables::place_rows(std::span<const dwell_unwind_row> rows,
                                                 std::span<const uint16_t> numbers,
                                                 uint64_t now_ns) {
  const auto place = row_places_.take(static_cast<uint32_t>(rows.size()), now_ns);
  if (!place) return std::nullopt;
  const uint32_t number = place->first / DWELL_UNWIND_SLAB_ROWS;
  if (!make_slabs(number)) {
    row_places_.give_back(*place, now_ns);
    return std::nullopt;
  }
  const uint32_t used = place->first % DWELL_UNWIND_SLAB_ROWS;
  for (size_t i = 0; i < rows.size(); ++i)
    slabs_[number][used + i] = (rows[i] & 0xffff0000) | numbers[rows[i] & 0xffff];
  rows_ += rows.size();
  return place->first;
}

bool LoadedTables::copy_rows(const Table& table, std::span<dwell_unwind_page> pages,
                             uint64_t now_ns) {
  const auto numbers = renumber(table.rules);
  const std::span rows(table.rows);
  for (size_t i = 0; i < table.pages.size(); ++i) {
    const dwell_unwind_page& page = table.pages[i];
    if (page.rows == 0) continue;
    const auto first = place_rows(rows.subspan(page.first_row, page.rows), numbers, now_ns);
    if (!first) return false;
    pages[i] = {*first, page.rows};
  }
  return true;
}

TableId LoadedTables::new_id() {
  if (dropped_.empty()) {
    tables_.emplace_back();
    return static_cast<TableId>(tables_.size() - 1);
  }
  const TableId id = dropped_.back();
  dropped_.pop_back();
  return id;
}

TableId LoadedTables::add(const Table& table, uint64_t now_ns) {
  if (table.rows.empty()) return kNoTable;
  const auto place = page_places_.take(static_cast<uint32_t>(table.pages.size()), now_ns);
  if (!place) {
    ++refused_tables_;
    return kNoTable;
  }
  // Half a table is kept: better than none, and its missing pages say that they have no rows.
  const auto own = memory_->pages().subspan(place->first, place->count);
  std::ranges::fill(own, dwell_unwind_page{});
  if (!copy_rows(table, own, now_ns)) ++refused_tables_;
  const TableId id = new_id();
  tables_[id] = {.first_page_number = table.first_page, .pages = *place, .idle_since_ns = now_ns};
  return id;
}

void LoadedTables::drop(Loaded& table, uint64_t now_ns) {
  for (const dwell_unwind_page& page :
       memory_->pages().subspan(table.pages.first, table.pages.count)) {
    if (page.rows == 0) continue;
    row_places_.give_back({page.first_row, page.rows}, now_ns);
    rows_ -= page.rows;
  }
  page_places_.give_back(table.pages, now_ns);
  table = Loaded();
  table.dropped = true;
}

std::vector<TableId> LoadedTables::drop_idle(uint64_t now_ns) {
  std::vector<TableId> idle;
  for (TableId id = 0; id < tables_.size(); ++id) {
    Loaded& table = tables_[id];
    if (table.dropped || table.lists > 0 || now_ns < table.idle_since_ns + kIdleNs) continue;
    drop(table, now_ns);
    idle.push_back(id);
  }
  dropped_.insert(dropped_.end(), idle.begin(), idle.end());
  return idle;
}

void LoadedTables::begin_list(Place place, std::span<const ProcessMapping> mappings) {
  List list{.processes = 1, .tables = {}};
  for (const ProcessMapping& mapping : mappings)
    if (mapping.table != kNoTable) list.tables.push_back(mapping.table);
  std::ranges::sort(list.tables);
  const auto repeated = std::ranges::unique(list.tables);
  list.tables.erase(repeated.begin(), repeated.end());
  for (const TableId table : list.tables) ++tables_[table].lists;
  users_[place.first] = std::move(list);
}

void LoadedTables::end_list(Place place, uint64_t now_ns) {
  const auto list = users_.find(place.first);
  for (const TableId table : list->second.tables)
    if (--tables_[table].lists == 0) tables_[table].idle_since_ns = now_ns;
  users_.erase(list);
  mapping_places_.give_back(place, now_ns);
}

void LoadedTables::release(uint32_t pid, uint64_t now_ns) {
  const auto known = lists_.find(pid);
  if (known == lists_.end()) return;
  if (--users_[known->second.first].processes == 0) end_list(known->second, now_ns);
  lists_.erase(known);
}

Status LoadedTables::set_process(uint32_t pid, uint64_t start_boottime_ns,
                                 std::span<const ProcessMapping> mappings, uint64_t now_ns,
                                 const PythonPlace& python) {
  const bool too_many = mappings.size() > kMappingsOfProcessMax;
  if (too_many) ++refused_lists_;
  if (mappings.empty() || too_many) {
    forget_process(pid, now_ns);
    return {};
  }
  const auto place = mapping_places_.take(static_cast<uint32_t>(mappings.size()), now_ns);
  if (!place) {
    ++refused_lists_;
    return runtime_error("the table of mappings is full");
  }
  const auto kernel = memory_->mappings().subspan(place->first, place->count);
  for (size_t i = 0; i < mappings.size(); ++i) {
    const ProcessMapping& from = mappings[i];
    kernel[i] = {from.start, from.end, from.bias, 0, 0};
    if (from.table == kNoTable) continue;
    const Loaded& table = tables_[from.table];
    kernel[i].base = from.bias + (table.first_page_number << DWELL_UNWIND_PAGE_SHIFT);
    kernel[i].first_page = table.pages.first;
    kernel[i].pages = table.pages.count;
  }
  const Status set = memory_->set_process(pid, {start_boottime_ns, place->first, place->count,
                                                ++version_, python.layout, python.runtime});
  if (!set) {
    ++refused_lists_;
    failure_ = set.error().message;
    mapping_places_.give_back(*place, now_ns);
    return set;
  }
  release(pid, now_ns);
  lists_[pid] = *place;
  begin_list(*place, mappings);
  return {};
}

void LoadedTables::share(uint32_t parent_pid, uint32_t pid) {
  const auto parent = lists_.find(parent_pid);
  if (parent == lists_.end() || lists_.contains(pid)) return;
  const Place place = parent->second;
  lists_[pid] = place;
  ++users_[place.first].processes;
}

void LoadedTables::forget_process(uint32_t pid, uint64_t now_ns) {
  if (lists_.contains(pid)) memory_->forget_process(pid);
  release(pid, now_ns);
}

std::vector<std::string> LoadedTables::warnings() const {
  std::vector<std::string> all;
  const std::string cause = failure_.empty() ? "" : " (" + failure_ + ")";
  if (refused_tables_ > 0)
    all.push_back(
        fmt::format("the unwind tables of {} files did not fit{}: where their code has no "
                    "frame pointers, stacks are cut; raise --unwind-rows",
                    refused_tables_, cause));
  if (refused_lists_ > 0)
    all.push_back(
        fmt::format("{} times the mappings of a process did not fit among the unwind "
                    "tables{}: its stacks follow frame pointers alone",
                    refused_lists_, cause));
  if (rules_.refused() > 0)
    all.push_back(fmt::format("{} unwind rules did not fit: stacks that need them are cut",
                              rules_.refused()));
  return all;
}

}  // namespace dwell::unwind
