// The walker's maps in our own memory, and its look-up: for tests of what fills them.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "unwind/table_memory.h"

namespace dwell::unwind {

struct TableSizes {
  size_t rules = 64, pages = 64, mappings = 16, slabs = 2, processes = 8;
};

// The maps in our own memory, and the look-up of the walker in bpf/unwind_tables.h.
class FakeTableMemory final : public TableMemory {
 public:
  explicit FakeTableMemory(const TableSizes& sizes)
      : sizes_(sizes), rules_(sizes.rules), pages_(sizes.pages), mappings_(sizes.mappings) {}
  std::span<dwell_unwind_rule> rules() override { return rules_; }
  std::span<dwell_unwind_page> pages() override { return pages_; }
  std::span<dwell_unwind_mapping> mappings() override { return mappings_; }
  size_t slabs_max() const override { return sizes_.slabs; }
  Result<std::span<dwell_unwind_row>> make_slab(uint32_t number) override {
    if (number != slabs_.size()) return runtime_error("slabs come in order");
    slabs_.emplace_back(DWELL_UNWIND_SLAB_ROWS);
    return std::span(slabs_.back());
  }
  Status set_process(uint32_t pid, const dwell_unwind_process& process) override {
    if (processes_.size() >= sizes_.processes && !processes_.contains(pid))
      return runtime_error("E2BIG");
    processes_[pid] = process;
    return {};
  }
  void forget_process(uint32_t pid) override { processes_.erase(pid); }
  Status set_python_layout(uint32_t number, const dwell_python_layout& layout) override {
    if (number >= DWELL_PYTHON_LAYOUTS) return runtime_error("E2BIG");
    python_layouts_[number] = layout;
    return {};
  }
  uint64_t slab_bytes() const override { return 0; }

  const dwell_unwind_rule* find(uint32_t pid, uint64_t ip) const {
    const auto process = processes_.find(pid);
    if (process == processes_.end()) return nullptr;
    const auto begin = mappings_.begin() + process->second.first_mapping;
    for (const auto& mapping : std::span(begin, process->second.mappings)) {
      if (ip < mapping.start || ip >= mapping.end) continue;
      const uint64_t offset = ip - mapping.base, page = offset >> DWELL_UNWIND_PAGE_SHIFT;
      return page < mapping.pages ? find_in(pages_[mapping.first_page + page], offset) : nullptr;
    }
    return nullptr;
  }
  void fork(uint32_t parent, uint32_t child) { processes_[child] = processes_.at(parent); }
  size_t processes() const { return processes_.size(); }
  const dwell_unwind_process* process(uint32_t pid) const {
    const auto found = processes_.find(pid);
    return found == processes_.end() ? nullptr : &found->second;
  }
  const std::map<uint32_t, dwell_python_layout>& python_layouts() const { return python_layouts_; }

 private:
  const dwell_unwind_rule* find_in(const dwell_unwind_page& page, uint64_t offset) const {
    const dwell_unwind_row wanted = DWELL_UNWIND_ROW(offset, 0xffff);
    dwell_unwind_row found = 0;
    for (uint32_t i = page.first_row; i < page.first_row + page.rows; ++i) {
      const auto row = slabs_[i / DWELL_UNWIND_SLAB_ROWS][i % DWELL_UNWIND_SLAB_ROWS];
      if (row <= wanted) found = row;
    }
    return (found & 0xffff) == 0 ? nullptr : &rules_[found & 0xffff];
  }

  TableSizes sizes_;
  std::vector<dwell_unwind_rule> rules_;
  std::vector<dwell_unwind_page> pages_;
  std::vector<dwell_unwind_mapping> mappings_;
  std::vector<std::vector<dwell_unwind_row>> slabs_;
  std::map<uint32_t, dwell_unwind_process> processes_;
  std::map<uint32_t, dwell_python_layout> python_layouts_;
};

}  // namespace dwell::unwind
