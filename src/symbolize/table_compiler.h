// Compiles unwind tables on a thread of its own: the recording loop has rings to empty, and a large
// file takes seconds. Reading a file on a dead mount may block for ever: then the thread stays
// behind when this object goes, and nothing more is compiled.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "unwind/table.h"

namespace dwell::symbolize {

struct CompiledTable {
  uint32_t object = 0;
  Result<unwind::Table> table;
};

class TableCompiler {
 public:
  static constexpr size_t kQueueMax = 4096;
  using Task = std::function<Result<unwind::Table>()>;

  TableCompiler();
  ~TableCompiler();
  TableCompiler(const TableCompiler&) = delete;
  TableCompiler& operator=(const TableCompiler&) = delete;

  // `task` owns all that it touches. False if the queue is full.
  bool submit(uint32_t object, Task task);
  // Readable when something is finished, until the next take(); -1 if the kernel gave none.
  int fd() const;
  // What is finished, in the order of submission.
  std::vector<CompiledTable> take();
  // Nothing is to be compiled or taken.
  bool is_idle() const;
  // Waits until something is finished or the time is over.
  void wait(std::chrono::milliseconds patience);

 private:
  struct Desk;
  std::shared_ptr<Desk> desk_;  // shared with the thread, which may outlive us
};

}  // namespace dwell::symbolize
