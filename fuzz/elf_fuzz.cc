// An ELF file of a hostile target: symbol tables, notes, .gnu_debugdata, debug link, PLT, names,
// and where its unwind data lies.
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "symbolize/demangle.h"
#include "symbolize/symbol_loader.h"
#include "symbolize/unwind_data.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dwell::symbolize;
  constexpr size_t kMemory = size_t{16} << 20;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto elf = ElfFile::read(FileBytes::of_memory(bytes));
  if (!elf) return 0;
  const auto loaded = load_symbols(FileBytes::of_memory(bytes), "/fuzz", {}, kMemory);
  static_cast<void>(read_unwind_data(FileBytes::of_memory(bytes)));
  std::vector<uint64_t> wanted;
  for (const LoadSegment& segment : elf->segments())
    for (uint64_t step = 0; step < 8; ++step) wanted.push_back(segment.address + step * 48);
  std::ranges::sort(wanted);
  const auto part = load_symbols(FileBytes::of_memory(bytes), "/fuzz", {}, kMemory, wanted);
  for (const uint64_t address : wanted)
    if (part.table) part.table->find(address);
  for (const LoadSegment& segment : elf->segments()) {
    to_virtual_address(elf->segments(), segment.offset, segment.offset);
    for (uint64_t step = 0; loaded.table && step < 64; ++step)
      if (const auto match = loaded.table->find(segment.address + step * 16)) demangle(match->name);
  }
  return 0;
}
