// From raw instruction pointers to named frames, in two steps that may be minutes apart:
//   locate_*  while the process lives (or shortly after): address -> (object, address in the
//   object) describe  when the report is built: (object, address) -> function, offset, how it was
//   found
// Everything that the target controls (maps, ELF files, JIT maps, names) is treated as hostile:
// bounded sizes, bounded time, a reason instead of a name. One thread calls it: the recording loop.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/frame.h"
#include "base/ids.h"
#include "base/result.h"
#include "unwind/loaded_tables.h"

namespace dwell::symbolize {

using LocationId = uint32_t;  // dense, starts at 0; equal (object, address, adjust) have equal ids
using ObjectId = uint32_t;    // dense; 0 is the unknown object

struct ObjectInfo {
  std::string path;  // as the process sees it; "[vdso]", "[kernel]", "[anon]", "[jit]", module name
  std::string build_id;  // lowercase hex, "" if none
  ModuleKind kind = ModuleKind::kUnknown;
};

struct FrameInfo {
  std::string function;  // demangled, "" if how == kNone
  std::string symbol;    // as in the table
  ObjectId object = 0;
  uint64_t address = 0;  // ELF virtual address, or raw
  uint64_t offset = 0;   // from the start of the function
  Resolution how = Resolution::kNone;
  FrameKind kind = FrameKind::kUser;
  uint32_t line = 0;  // of Python functions, in the file that `object` names; 0: unknown
};

// Frames of one object that got no name, with the reason and the one remedy.
struct Unresolved {
  ObjectId object = 0;
  uint64_t frames = 0;
  std::string reason;
  std::string remedy;
};

// What is known of a process, kept after its exit.
struct ProcessInfo {
  std::string executable;    // "" if never seen alive
  std::string command_line;  // arguments joined by blanks, at most 4 KiB
};

struct Options {
  bool kernel = true;  // read /proc/kallsyms
  bool demangle = true;
  bool python = true;  // the frames of CPython's interpreter
  bool follow_mappings =
      true;  // mmap, exec, exit through perf events (needs privilege), else /proc only
  std::string perf_map_dir;  // besides the target's /tmp
  std::string debug_dir = "/usr/lib/debug";
  std::string unwind_cache;     // folder of compiled unwind tables; "": they are compiled each time
  bool (*hurried)() = nullptr;  // whether somebody waits for the end (file_worker.h)
  size_t open_files_max = 256;
  size_t symbol_bytes_max = size_t{256} << 20;
};

class Symbolizer {
 public:
  static Result<std::unique_ptr<Symbolizer>> create(const Options& options);
  virtual ~Symbolizer() = default;

  // Takes in what mapping events have arrived. Cheap; call it before each batch of locate calls.
  virtual void poll() = 0;

  // Readable when there is something for poll() to take in; -1: it has to be called now and then.
  virtual int events_fd() const { return -1; }

  // `ip` as walked; `return_address` for every frame but the leaf; `time_ns` (CLOCK_MONOTONIC) when
  // the stack was first seen: decides between two mappings that shared the address.
  virtual LocationId locate_user(const ProcessKey& process, uint64_t ip, bool return_address,
                                 uint64_t time_ns) = 0;
  virtual LocationId locate_kernel(uint64_t ip, bool return_address) = 0;
  // Python frames (abi/python.h), read while the process lives; `layout` as the probe says it.
  // Where the function could not be read stands a placeholder: `unread` counts them.
  virtual std::vector<LocationId> locate_python(const ProcessKey& process, uint32_t layout,
                                                std::span<const uint64_t> words, uint64_t time_ns,
                                                uint64_t& unread) = 0;

  // Called as soon as a process is seen, so that its maps and names are read while it lives.
  virtual void notice_process(const ProcessKey& process) = 0;
  virtual ProcessInfo process_info(const ProcessKey& process) const = 0;

  // Unwind tables for the kernel's walker, kept in step with the mappings of the processes that are
  // named. `tables` outlives the symbolizer. Without this call the others do nothing.
  virtual void load_unwind_tables(unwind::LoadedTables&) {}
  virtual void unwind_process(uint32_t) {}
  virtual void unwind_all_processes() {}
  // Whether tables have come into force since the last call.
  virtual bool unwinding_changed() { return false; }
  // A walk in that process came to an address that its tables do not know.
  virtual void doubt_unwinding(uint32_t) {}
  // Waits for the tables of what was named so far, at most so long. True: there is nothing left to
  // wait for.
  virtual bool settle_unwinding(std::chrono::milliseconds) { return true; }

  virtual FrameInfo describe(LocationId location) = 0;
  virtual const ObjectInfo& object(ObjectId object) const = 0;
  virtual std::vector<Unresolved> unresolved()
      const = 0;  // complete once every location was described
  virtual std::vector<std::string> warnings() const = 0;  // "kernel.kptr_restrict is 2: ..."
};

}  // namespace dwell::symbolize
