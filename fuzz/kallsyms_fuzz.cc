// /proc/kallsyms and /proc/modules: the input up to the first zero byte, and the rest.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "symbolize/kernel_symbols.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dwell::symbolize;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t split = std::min(text.find('\0'), text.size());
  auto symbols = KernelSymbols::parse(text.substr(0, split), text.substr(split));
  for (uint64_t i = 0; i < 256; ++i) {
    const uint64_t address = i % 2 == 0 ? UINT64_MAX - i * 4096 : 0xffffffffc0000000 + i * 64;
    if (const auto symbol = symbols.find(address)) {
      if (symbol->address > address) std::abort();
      kernel_function_name(symbol->name);
    }
    symbols.module_of(address);
    if (i % 8 == 0) symbols.add_bpf(address, static_cast<uint32_t>(i * 16), "bpf_prog_x");
  }
  return 0;
}
