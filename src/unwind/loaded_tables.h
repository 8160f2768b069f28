// The tables that the kernel's walker uses: those of files, loaded once each and shared, and for
// each process the list of its mappings that refers to them.
//
// Order is all that keeps the walker from half a table: rows, then their page, then the mapping,
// then the process. A list is never changed in place: a new one is written beside it, and the old
// one's place is used again only after kReuseAfterNs, when no walk can be reading it and the forks
// that copied the reference are known. Tables of files stay as long as this object.
// One thread owns it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "unwind/table.h"
#include "unwind/table_memory.h"

namespace dwell::unwind {

using TableId = uint32_t;
constexpr TableId kNoTable = UINT32_MAX;

// An executable mapping: an address less `bias` is the address in the file.
struct ProcessMapping {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t bias = 0;
  TableId table = kNoTable;  // kNoTable: only frame pointers
};

class LoadedTables {
 public:
  static constexpr uint64_t kReuseAfterNs = 2'000'000'000;
  static constexpr size_t kMappingsOfProcessMax = 16384;  // or one process could take all places

  explicit LoadedTables(std::unique_ptr<TableMemory> memory);

  // kNoTable if there is no unwind data in it, or no room for it: warnings() then says so.
  TableId add(const Table& table);
  // `mappings` ascend. What the process had before is replaced.
  Status set_process(uint32_t pid, uint64_t start_boottime_ns,
                     std::span<const ProcessMapping> mappings, uint64_t now_ns);
  // A forked child uses its parent's list, as the probe has already arranged.
  void share(uint32_t parent_pid, uint32_t pid);
  // After an exec or an exit.
  void forget_process(uint32_t pid, uint64_t now_ns);

  size_t processes() const { return lists_.size(); }
  uint64_t rows() const { return rows_; }
  uint64_t kernel_bytes() const { return memory_->slab_bytes(); }
  std::vector<std::string> warnings() const;

 private:
  struct Place {
    uint32_t first = 0;
    uint32_t count = 0;
  };
  struct Loaded {
    uint64_t first_page_number = 0;  // of the code
    uint32_t first_page = 0;         // index into the pages
    uint32_t pages = 0;
  };
  struct Freed {
    Place place;
    uint64_t at_ns = 0;
  };

  bool copy_rows(const Table& table, std::span<dwell_unwind_page> pages);
  std::optional<uint32_t> place_rows(std::span<const dwell_unwind_row> rows,
                                     std::span<const uint16_t> numbers);
  std::vector<uint16_t> renumber(const std::vector<Rule>& rules);
  std::optional<Place> take_place(uint32_t count, uint64_t now_ns);
  void give_back(Place place);
  void release(uint32_t pid, uint64_t now_ns);

  std::unique_ptr<TableMemory> memory_;
  RuleTable rules_;
  size_t rules_copied_ = 0;
  std::vector<std::span<dwell_unwind_row>> slabs_;
  uint32_t next_row_ = 0;  // over all slabs
  uint32_t next_page_ = 0;
  uint64_t rows_ = 0;
  uint32_t version_ = 0;  // of the last list
  std::vector<Loaded> tables_;
  std::map<uint32_t, uint32_t> free_;          // places in the mappings: first -> count
  std::deque<Freed> freed_;                    // to be free_ later
  std::unordered_map<uint32_t, Place> lists_;  // by pid
  std::map<uint32_t, uint32_t> users_;         // of the place that begins there
  uint64_t refused_tables_ = 0;
  uint64_t refused_lists_ = 0;
  std::string failure_;  // the last of the kernel's
};

}  // namespace dwell::unwind
