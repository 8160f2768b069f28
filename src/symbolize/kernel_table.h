// The kernel symbols of this machine as the symbolizer uses them: read from /proc, read again when
// modules or BPF programs came, with a warning where the kernel hides its addresses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "symbolize/kernel_symbols.h"
#include "symbolize/object_table.h"

namespace dwell::symbolize {

class KernelTable {
 public:
  static constexpr uint64_t kRereadPauseNs = 2'000'000'000;

  KernelTable(ObjectTable& objects, bool enabled);

  // The object that holds a kernel address: "[kernel]", a module, "[bpf]".
  ObjectId object_of(uint64_t address);
  void name(uint64_t address, bool return_address, FrameInfo& frame);
  KernelSymbols& symbols() { return symbols_; }
  const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  void read();
  void reread_if_due();
  void warn_hidden();

  ObjectTable& objects_;
  bool enabled_;
  KernelSymbols symbols_;
  uint64_t read_ns_ = 0;
  ObjectId kernel_object_;
  std::vector<std::string> warnings_;
};

}  // namespace dwell::symbolize
