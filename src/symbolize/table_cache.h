// Compiled unwind tables on disk, so that the next recording need not compile them again.
//
// A table is found by what it was made of: the name is the build id, for people, and a keyed hash
// of the very sections. A file that claims the build id of another finds nothing of it, and none
// can be made that hits another's hash without the key. Only a folder that is ours alone is used,
// and what is read is checked like any hostile file: the worst a cache can do is nothing.
// Bounded in bytes; what was used longest ago goes first. Any thread; the table compiler's calls
// it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "symbolize/unwind_data.h"

namespace dwell::symbolize {

struct TableCacheLimits {
  uint64_t bytes_max = uint64_t{256} << 20;  // of all files
  uint64_t file_bytes_max = uint64_t{96} << 20;
  size_t files_max = 4096;
  size_t rows_min = 4096;  // smaller tables are compiled within a millisecond
};

class TableCache {
 public:
  // Makes the folder if need be. An error if it cannot be used: it belongs to somebody else, others
  // may write to it, it lies on a read-only disk.
  static Result<std::unique_ptr<TableCache>> open(const std::string& folder,
                                                  const TableCacheLimits& limits = {});

  // The table that these sections were compiled into before.
  std::optional<unwind::Table> find(const UnwindData& data);
  // Best effort: a full disk only means that it is not found.
  void store(const UnwindData& data, const unwind::Table& table);

  uint64_t hits() const { return hits_; }
  uint64_t stored() const { return stored_; }
  uint64_t refused() const { return refused_; }  // damaged files, removed

 private:
  TableCache(Fd folder, std::string key, const TableCacheLimits& limits)
      : folder_(std::move(folder)), key_(std::move(key)), limits_(limits) {}
  std::string name_of(const UnwindData& data) const;
  void make_room();

  const Fd folder_;
  const std::string key_;
  const TableCacheLimits limits_;
  std::mutex mutex_;  // make_room(): one at a time
  std::atomic<uint64_t> hits_ = 0;
  std::atomic<uint64_t> stored_ = 0;
  std::atomic<uint64_t> refused_ = 0;
};

// $XDG_CACHE_HOME/dwell, else /var/cache/dwell for root and ~/.cache/dwell for others; "": none.
std::string default_cache_folder();

}  // namespace dwell::symbolize
