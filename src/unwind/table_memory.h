// The memory that the kernel's walker reads: the seam between the tables and the BPF maps. Writing
// to the arrays is a plain store, the kernel reads the same pages.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "abi/python.h"
#include "abi/unwind.h"
#include "base/fd.h"
#include "base/result.h"

namespace dwell::unwind {

class TableMemory {
 public:
  virtual ~TableMemory() = default;
  virtual std::span<dwell_unwind_rule> rules() = 0;
  virtual std::span<dwell_unwind_page> pages() = 0;
  virtual std::span<dwell_unwind_mapping> mappings() = 0;
  virtual size_t slabs_max() const = 0;
  // The rows of slab `number`, made at this moment: the kernel waits for running programs
  // meanwhile, some 10 ms.
  virtual Result<std::span<dwell_unwind_row>> make_slab(uint32_t number) = 0;
  virtual Status set_process(uint32_t pid, const dwell_unwind_process& process) = 0;
  virtual void forget_process(uint32_t pid) = 0;
  // How Python frames are read in the processes that name it; below DWELL_PYTHON_LAYOUTS.
  virtual Status set_python_layout(uint32_t number, const dwell_python_layout& layout) = 0;
  virtual uint64_t slab_bytes() const = 0;  // of kernel memory, beside the maps of the probe
};

// Descriptors of the maps in bpf/unwind_tables.h and python.h, borrowed from the probe; -1: it has
// none.
struct UnwindMaps {
  int processes = -1;
  int mappings = -1;
  int pages = -1;
  int rules = -1;
  int slabs = -1;
  int python_layouts = -1;
};

Result<std::unique_ptr<TableMemory>> open_bpf_memory(const UnwindMaps& maps);

}  // namespace dwell::unwind
