// The tables that the kernel's walker uses: those of files, loaded once each and shared, and for
// each process the list of its mappings that refers to them.
//
// Order is all that keeps the walker from half a table: rows, then their page, then the mapping,
// then the process. A list is never changed in place: a new one is written beside it, and the old
// one's place is used again only after kReuseAfterNs, when no walk can be reading it and the forks
// that copied the reference are known. The same goes for the table of a file that has been in no
// list for kIdleNs. One thread owns it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "unwind/places.h"
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

// Where a process keeps its CPython interpreter, and how to read it (abi/python.h).
struct PythonPlace {
  uint32_t layout = 0;   // 0: it has none
  uint64_t runtime = 0;  // address of _PyRuntime
};

class LoadedTables {
 public:
  static constexpr uint64_t kReuseAfterNs = Places::kReuseAfterNs;
  static constexpr uint64_t kIdleNs =
      60'000'000'000;  // programs that start again find their tables
  static constexpr size_t kMappingsOfProcessMax = 16384;  // or one process could take all places

  explicit LoadedTables(std::unique_ptr<TableMemory> memory);

  // kNoTable if there is no unwind data in it, or no room for it: warnings() then says so.
  TableId add(const Table& table, uint64_t now_ns = 0);
  // Drops the tables that no process has used for kIdleNs; returns them. Their ids are given to
  // others later.
  std::vector<TableId> drop_idle(uint64_t now_ns);
  // `mappings` ascend. What the process had before is replaced.
  Status set_process(uint32_t pid, uint64_t start_boottime_ns,
                     std::span<const ProcessMapping> mappings, uint64_t now_ns,
                     const PythonPlace& python = {});
  // Before the first process that names it.
  Status set_python_layout(uint32_t number, const dwell_python_layout& layout) {
    return memory_->set_python_layout(number, layout);
  }
  // A forked child uses its parent's list, as the probe has already arranged.
  void share(uint32_t parent_pid, uint32_t pid);
  // After an exec or an exit.
  void forget_process(uint32_t pid, uint64_t now_ns);

  size_t processes() const { return lists_.size(); }
  uint64_t rows() const { return rows_; }
  uint64_t kernel_bytes() const { return memory_->slab_bytes(); }
  std::vector<std::string> warnings() const;

 private:
  struct Loaded {
    uint64_t first_page_number = 0;  // of the code
    Place pages;
    uint32_t lists = 0;  // that refer to it
    uint64_t idle_since_ns = 0;
    bool dropped = false;
  };
  // The processes that share a list, and the tables it refers to.
  struct List {
    uint32_t processes = 0;
    std::vector<TableId> tables;
  };

  bool copy_rows(const Table& table, std::span<dwell_unwind_page> pages, uint64_t now_ns);
  std::optional<uint32_t> place_rows(std::span<const dwell_unwind_row> rows,
                                     std::span<const uint16_t> numbers, uint64_t now_ns);
  bool make_slabs(uint32_t number);
  std::vector<uint16_t> renumber(const std::vector<Rule>& rules);
  TableId new_id();
  void drop(Loaded& table, uint64_t now_ns);
  void begin_list(Place place, std::span<const ProcessMapping> mappings);
  void end_list(Place place, uint64_t now_ns);
  void release(uint32_t pid, uint64_t now_ns);

  std::unique_ptr<TableMemory> memory_;
  RuleTable rules_;
  size_t rules_copied_ = 0;
  std::vector<std::span<dwell_unwind_row>> slabs_;
  Places row_places_;  // over all slabs
  Places page_places_;
  Places mapping_places_;
  uint64_t rows_ = 0;
  uint32_t version_ = 0;  // of the last list
  std::vector<Loaded> tables_;
  std::vector<TableId> dropped_;               // ids to be given again
  std::unordered_map<uint32_t, Place> lists_;  // by pid
  std::map<uint32_t, List> users_;             // of the place that begins there
  uint64_t refused_tables_ = 0;
  uint64_t refused_lists_ = 0;
  std::string failure_;  // the last of the kernel's
};

}  // namespace dwell::unwind
