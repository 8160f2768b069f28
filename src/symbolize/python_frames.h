// Names for Python frames: the code objects of a process are read while it lives, once each.
//
// A new stack of a living process is read by one task of the file worker, since memory of another
// process may be as slow to answer as a file. What is known of a code object is checked each time
// by what it refers to, as another may have taken its place. Called by the symbolizer, on one
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "python/code_object.h"
#include "symbolize/file_worker.h"
#include "symbolize/live_process.h"

namespace dwell::symbolize {

struct PythonFunction {
  std::string name;
  std::string filename;
};

class PythonFrames {
 public:
  static constexpr size_t kCodesMax = 1 << 17;       // known at a time, of all processes
  static constexpr size_t kFunctionsMax = 1 << 20;   // named in all
  static constexpr size_t kLineBytesMax = 64 << 20;  // of line tables
  static constexpr uint32_t kUnread = UINT32_MAX;

  explicit PythonFrames(FileWorker& worker) : worker_(worker) {}

  struct Position {
    uint32_t function = kUnread;  // for function()
    uint32_t line = 0;            // 0: unknown
  };
  // Of each word (abi/python.h). `live` is null once the process has ended.
  std::vector<Position> locate(const ProcessKey& process, const LiveProcess* live,
                               const python::ObjectOffsets& offsets,
                               std::span<const uint64_t> words);
  const PythonFunction& function(uint32_t id) const { return functions_[id]; }

 private:
  struct Code {
    python::CodeIdentity identity;
    uint32_t function = kUnread;
    std::string line_table;
  };
  using Codes = std::unordered_map<uint64_t, Code>;  // by address
  void read_codes(Codes& codes, const LiveProcess& live, const python::ObjectOffsets& offsets,
                  std::span<const uint64_t> words);
  Code take(python::CodeObject&& object);
  void make_room(size_t codes);
  uint32_t function_of(const python::CodeObject& object);

  FileWorker& worker_;
  std::unordered_map<ProcessKey, Codes, ProcessKeyHash> processes_;
  size_t codes_ = 0;
  size_t line_bytes_ = 0;
  std::vector<PythonFunction> functions_;
  std::map<std::pair<std::string, std::string>, uint32_t> ids_;  // by name and file
};

}  // namespace dwell::symbolize
