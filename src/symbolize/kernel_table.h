// The kernel symbols of this machine as the symbolizer uses them: read from /proc, read again when
// modules or BPF programs came, with a warning where the kernel hides its addresses.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "symbolize/kernel_symbols.h"
#include "symbolize/object_table.h"

namespace dwell::symbolize {

class KernelTable {
 public:
  static constexpr uint64_t kRereadPauseNs = 2'000'000'000;
  static constexpr size_t kProgramsMax = 1 << 16;  // BPF programs known from events
  static constexpr size_t kRememberedMax = 1 << 18;

  // The object that holds a kernel address, and the name of it if that may change later on.
  struct Place {
    ObjectId object = 0;
    uint32_t remembered = 0;  // for name(); 0: none
  };

  KernelTable(ObjectTable& objects, bool enabled);

  // "[kernel]", a module, "[bpf]". Looked up at once: another program may lie there tomorrow.
  Place place_of(uint64_t address);
  void name(uint64_t address, bool return_address, uint32_t remembered, FrameInfo& frame) const;
  const std::vector<std::string>& warnings() const { return warnings_; }

  // A BPF program was loaded. One that is unloaded keeps its name until another takes its place:
  // nothing else can run there, and stacks of it may still be on their way.
  void on_program_loaded(uint64_t address, uint32_t bytes, const std::string& name);

 private:
  struct Program {
    uint64_t address;
    uint32_t bytes;
    std::string name;
  };
  void read();
  void reread_if_due();
  void warn_hidden();
  uint32_t remember(const KernelSymbol& symbol);

  ObjectTable& objects_;
  bool enabled_;
  KernelSymbols symbols_;
  uint64_t read_ns_ = 0;
  ObjectId kernel_object_;
  std::deque<Program> programs_;  // oldest first
  std::vector<KernelSymbol> remembered_{KernelSymbol{}};
  std::map<std::pair<uint64_t, std::string>, uint32_t> remembered_ids_;
  std::vector<std::string> warnings_;
};

}  // namespace dwell::symbolize
