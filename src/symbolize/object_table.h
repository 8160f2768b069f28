// Every file, pseudo file and JIT region that frames lie in, and the symbol table of each.
//
// An object is told apart by its build id and size, else by device, inode, time of modification and
// size: never by path. Files are kept open (at most `open_files_max`, least recently used closed
// first) so that they can be read after the process and the name are gone. Symbol tables are read
// when the first name is asked for, once, and held within `symbol_bytes_max`.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "symbolize/elf_file.h"
#include "symbolize/object_files.h"
#include "symbolize/symbol_loader.h"
#include "symbolize/symbol_table.h"
#include "symbolize/symbolizer.h"
#include "symbolize/table_cache.h"
#include "unwind/table.h"

namespace dwell::symbolize {

// Why an object gives no names, and what helps.
struct Excuse {
  std::string reason;
  std::string remedy;
};

class ObjectTable {
 public:
  static constexpr size_t kObjectsMax = 1 << 20;
  static constexpr int kLoadPatience = 10;    // a table of a gigabyte from a cold disk
  static constexpr int kPartialReadsMax = 3;  // then the whole table

  ObjectTable(const Options& options, const Roots& roots, FileWorker& worker);

  // The object of an opened file; the path and root are where it can be found again.
  ObjectId add_file(OpenedFile file, const std::string& path, RootId root);
  // An object without a file of its own, one per (name, kind).
  ObjectId add_named(const std::string& name, ModuleKind kind, const std::string& build_id = "");
  // An object of its own each time: code without a file of one process.
  ObjectId add_anonymous(const std::string& name, ModuleKind kind);
  // An ELF image held in memory: the vDSO.
  ObjectId add_image(const std::string& name, std::string image);

  // Address in the object for an offset in its file.
  uint64_t to_address(ObjectId object, uint64_t file_offset, uint64_t page_offset) const;

  // The bias of a mapping of the object: an address in it less the bias is the address in the
  // object. Nothing if no executable segment is mapped there.
  std::optional<uint64_t> bias(ObjectId object, uint64_t start, uint64_t page_offset) const;
  // Compiles the unwind data of the object; owns all it needs, may run on another thread. Null if
  // there is no file to read.
  std::function<Result<unwind::Table>()> unwind_task(ObjectId object);
  // Another descriptor of its file; none if there is no file to read.
  Fd duplicate_file(ObjectId object);

  // A name of this address will be asked for. A table is read for the addresses that are wanted by
  // then; the whole of it if there are none, or if more are wanted again and again.
  void want(ObjectId object, uint64_t address);
  // Loads the symbols if need be. nullptr: there are none, see excuse().
  const SymbolTable* symbols(ObjectId object);
  const Excuse& excuse(ObjectId object) const { return entries_[object].excuse; }
  void set_excuse(ObjectId object, Excuse excuse) { entries_[object].excuse = std::move(excuse); }

  const ObjectInfo& info(ObjectId object) const { return entries_[object].info; }
  void set_kind(ObjectId object, ModuleKind kind, const std::string& path);
  const std::string& build_id(ObjectId object) const { return entries_[object].info.build_id; }
  // Code outside files and images: its frames keep the address as walked.
  bool is_addressed_by_ip(ObjectId object) const;
  bool is_elf(ObjectId object) const { return !entries_[object].segments.empty(); }
  size_t size() const { return entries_.size(); }
  size_t open_files() const { return open_.size(); }
  size_t symbol_bytes() const { return symbol_bytes_; }
  size_t tables_loaded() const { return tables_loaded_; }  // ever: a re-read counts again

 private:
  struct Entry {
    ObjectInfo info;
    std::vector<LoadSegment> segments;
    FileIdentity identity;
    RootId root = Roots::kOwn;
    std::string image;  // in place of a file
    bool is_file = false;
    Fd fd;
    std::list<ObjectId>::iterator open_at;
    std::vector<uint64_t> wanted;
    int partial_reads = 0;  // of its table, for `wanted` only
    bool late = false;      // something is wanted that its table was not read for
    bool tried = false;     // symbols
    std::unique_ptr<SymbolTable> symbols;
    std::list<ObjectId>::iterator loaded_at;
    Excuse excuse;
  };

  ObjectId add_entry(Entry entry);
  void keep_open(ObjectId object, Fd fd);
  void close_oldest();
  bool reopen(ObjectId object);
  void load(ObjectId object);
  std::function<LoadedSymbols()> load_task(const Entry& entry) const;
  void drop_symbols(Entry& entry);
  void fit_budget(ObjectId newest);

  const Options options_;
  const Roots& roots_;
  FileWorker& worker_;
  std::vector<Entry> entries_;
  std::shared_ptr<TableCache> unwind_cache_;  // shared with the compiler's thread; may be null
  std::map<FileIdentity, ObjectId> by_identity_;
  std::map<std::pair<std::string, uint64_t>, ObjectId> by_build_id_;
  std::map<std::pair<std::string, ModuleKind>, ObjectId> by_name_;
  std::list<ObjectId> open_;    // most recently used first
  std::list<ObjectId> loaded_;  // most recently used first
  size_t symbol_bytes_ = 0;
  size_t tables_loaded_ = 0;
};

}  // namespace dwell::symbolize
