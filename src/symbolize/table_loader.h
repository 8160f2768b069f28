// Keeps the unwind tables in the kernel in step with the mappings of the recorded processes: which
// process maps which files where, and a compiled table for each of those files.
//
// Until a file is compiled its mappings stand there without a table, so that its frames are
// followed by frame pointer; the same goes for code that no file holds. Called by the symbolizer,
// which knows the mappings, between two looks at the rings.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "symbolize/object_finder.h"
#include "symbolize/object_table.h"
#include "symbolize/process_maps.h"
#include "symbolize/python_programs.h"
#include "symbolize/table_compiler.h"
#include "unwind/loaded_tables.h"

namespace dwell::symbolize {

class TableLoader {
 public:
  static constexpr size_t kProcessesMax = 1 << 15;
  static constexpr size_t kListsPerUpdate = 64;   // written between two looks at the rings
  static constexpr size_t kLooksPerUpdate = 256;  // at processes that may have ended
  static constexpr uint64_t kRefreshPauseNs = 100'000'000;  // doubled each time, per process
  static constexpr int kRefreshDoublingsMax = 7;
  static constexpr uint64_t kDropPauseNs = 1'000'000'000;  // between two looks for idle tables

  // `python`: null if nobody wants Python frames.
  TableLoader(unwind::LoadedTables& tables, ObjectTable& objects, ObjectFinder& finder,
              ProcessMaps& maps, Roots& roots, PythonPrograms* python = nullptr)
      : tables_(tables),
        objects_(objects),
        finder_(finder),
        maps_(maps),
        roots_(roots),
        python_(python) {}

  // From now on the process has tables; `all`: every process, the running ones first.
  void want(uint32_t pid);
  void want_all();
  // A walk came to an address that no mapping of the process holds.
  void doubt(uint32_t pid, uint64_t now_ns);

  // Mapping events.
  void on_fork(uint32_t parent_pid, uint32_t pid);
  void on_exec(uint32_t pid, uint64_t now_ns);
  void on_map(uint32_t pid);

  // Readable when update() has something to bring.
  int compiled_fd() const { return compiler_.fd(); }
  // Brings what is finished or has changed into the kernel. Bounded; the rest waits for the next.
  void update(uint64_t now_ns);
  // Whether a list was written since the last call.
  bool take_changed() { return std::exchange(wrote_, false); }
  // Updates until nothing is left to do, or the time is over: then false.
  bool settle(std::chrono::milliseconds patience);

 private:
  struct Process {
    bool queued = false;        // in changed_
    bool lacks_tables = false;  // some of its files are being compiled
    uint64_t next_refresh_ns = 0;
    int refreshes = 0;
  };
  struct FileTable {
    enum class State : uint8_t { kUnknown, kCompiling, kReady } state = State::kUnknown;
    unwind::TableId id = unwind::kNoTable;
  };

  void change(uint32_t pid, Process& process);
  void take_compiled(uint64_t now_ns);
  void drop_idle(uint64_t now_ns);
  void write_list(uint32_t pid, uint64_t now_ns);
  // What a list under way says beside its mappings.
  struct ListFacts {
    bool lacks_tables = false;
    unwind::PythonPlace python;
  };
  unwind::ProcessMapping describe(Image& image, Mapping& mapping, const LiveProcess& live,
                                  ListFacts& facts);
  const FileTable& table_of(ObjectId object);
  void forget_ended(uint64_t now_ns);

  unwind::LoadedTables& tables_;
  ObjectTable& objects_;
  ObjectFinder& finder_;
  ProcessMaps& maps_;
  Roots& roots_;
  PythonPrograms* python_;
  TableCompiler compiler_;
  bool all_ = false;
  bool wrote_ = false;
  std::map<uint32_t, Process> processes_;
  std::deque<uint32_t> changed_;
  std::vector<FileTable> file_tables_;  // by ObjectId
  uint32_t last_looked_at_ = 0;         // pid
  uint64_t next_drop_ns_ = 0;
};

}  // namespace dwell::symbolize
