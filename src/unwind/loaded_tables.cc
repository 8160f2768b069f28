#include "unwind/loaded_tables.h"

#include <fmt/format.h>

#include <algorithm>

namespace dwell::unwind {

LoadedTables::LoadedTables(std::unique_ptr<TableMemory> memory)
    : memory_(std::move(memory)), rules_(memory_->rules().size()) {
  if (!memory_->mappings().empty()) free_[0] = static_cast<uint32_t>(memory_->mappings().size());
}

// The numbers of a table's own rules among all rules, which the kernel has by then.
std::vector<uint16_t> LoadedTables::renumber(const std::vector<Rule>& rules) {
  std::vector<uint16_t> numbers;
  for (const Rule& rule : rules) numbers.push_back(rules_.number_of(rule));
  const auto kernel = memory_->rules();
  for (; rules_copied_ < std::min(rules_.rules().size(), kernel.size()); ++rules_copied_)
    kernel[rules_copied_] = rules_.rules()[rules_copied_];
  return numbers;
}

// Copies the rows of one page into one slab.
std::optional<uint32_t> LoadedTables::place_rows(std::span<const dwell_unwind_row> rows,
                                                 std::span<const uint16_t> numbers) {
  uint32_t used = next_row_ % DWELL_UNWIND_SLAB_ROWS;
  if (used + rows.size() > DWELL_UNWIND_SLAB_ROWS) next_row_ += DWELL_UNWIND_SLAB_ROWS - used;
  const uint32_t number = next_row_ / DWELL_UNWIND_SLAB_ROWS;
  if (number >= memory_->slabs_max()) return std::nullopt;
  if (number >= slabs_.size()) {
    auto slab = memory_->make_slab(number);
    if (!slab) {
      failure_ = slab.error().message;
      return std::nullopt;
    }
    slabs_.push_back(*slab);
  }
  const uint32_t first = next_row_;
  used = first % DWELL_UNWIND_SLAB_ROWS;
  for (size_t i = 0; i < rows.size(); ++i)
    slabs_[number][used + i] = (rows[i] & 0xffff0000) | numbers[rows[i] & 0xffff];
  next_row_ += static_cast<uint32_t>(rows.size());
  rows_ += rows.size();
  return first;
}

bool LoadedTables::copy_rows(const Table& table, std::span<dwell_unwind_page> pages) {
  const auto numbers = renumber(table.rules);
  const std::span rows(table.rows);
  for (size_t i = 0; i < table.pages.size(); ++i) {
    const dwell_unwind_page& page = table.pages[i];
    pages[i] = {0, 0};
    if (page.rows == 0) continue;
    const auto first = place_rows(rows.subspan(page.first_row, page.rows), numbers);
    if (!first) return false;
    pages[i] = {*first, page.rows};
  }
  return true;
}

TableId LoadedTables::add(const Table& table) {
  if (table.rows.empty()) return kNoTable;
  const auto pages = memory_->pages();
  if (table.pages.size() > pages.size() - next_page_) {
    ++refused_tables_;
    return kNoTable;
  }
  // Half a table is kept: better than none, and its missing pages say that they have no rows.
  const auto own = pages.subspan(next_page_, table.pages.size());
  std::ranges::fill(own, dwell_unwind_page{});
  if (!copy_rows(table, own)) ++refused_tables_;
  tables_.push_back({table.first_page, next_page_, static_cast<uint32_t>(table.pages.size())});
  next_page_ += static_cast<uint32_t>(table.pages.size());
  return static_cast<TableId>(tables_.size() - 1);
}

void LoadedTables::give_back(Place place) {
  auto [at, added] = free_.try_emplace(place.first, place.count);
  if (const auto next = std::next(at);
      next != free_.end() && place.first + place.count == next->first) {
    at->second += next->second;
    free_.erase(next);
  }
  if (at == free_.begin()) return;
  const auto before = std::prev(at);
  if (before->first + before->second != at->first) return;
  before->second += at->second;
  free_.erase(at);
}

std::optional<LoadedTables::Place> LoadedTables::take_place(uint32_t count, uint64_t now_ns) {
  while (!freed_.empty() && now_ns - freed_.front().at_ns >= kReuseAfterNs) {
    give_back(freed_.front().place);
    freed_.pop_front();
  }
  for (auto at = free_.begin(); at != free_.end(); ++at) {
    if (at->second < count) continue;
    const Place place{at->first, count};
    if (at->second > count) free_[at->first + count] = at->second - count;
    free_.erase(at);
    return place;
  }
  return std::nullopt;
}

void LoadedTables::release(uint32_t pid, uint64_t now_ns) {
  const auto known = lists_.find(pid);
  if (known == lists_.end()) return;
  const auto users = users_.find(known->second.first);
  if (--users->second == 0) {
    freed_.push_back({known->second, now_ns});
    users_.erase(users);
  }
  lists_.erase(known);
}

Status LoadedTables::set_process(uint32_t pid, uint64_t start_boottime_ns,
                                 std::span<const ProcessMapping> mappings, uint64_t now_ns) {
  const bool too_many = mappings.size() > kMappingsOfProcessMax;
  if (too_many) ++refused_lists_;
  if (mappings.empty() || too_many) {
    forget_process(pid, now_ns);
    return {};
  }
  const auto place = take_place(static_cast<uint32_t>(mappings.size()), now_ns);
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
    kernel[i].first_page = table.first_page;
    kernel[i].pages = table.pages;
  }
  const Status set =
      memory_->set_process(pid, {start_boottime_ns, place->first, place->count, ++version_, 0});
  if (!set) {
    ++refused_lists_;
    failure_ = set.error().message;
    freed_.push_back({*place, now_ns});
    return set;
  }
  release(pid, now_ns);
  lists_[pid] = *place;
  users_[place->first] = 1;
  return {};
}

void LoadedTables::share(uint32_t parent_pid, uint32_t pid) {
  const auto parent = lists_.find(parent_pid);
  if (parent == lists_.end() || lists_.contains(pid)) return;
  const Place place = parent->second;
  lists_[pid] = place;
  ++users_[place.first];
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
