// The kernel's functions: vmlinux, modules, BPF programs and trampolines.
//
// A snapshot of /proc/kallsyms and /proc/modules, taken at start and again (at most once per
// kRereadPause) when an address above the vmlinux text has no name: modules and BPF programs come
// and go. Symbols of BPF programs also arrive one by one from mapping events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/frame.h"
#include "base/result.h"

namespace dwell::symbolize {

// Where a kernel address lies.
struct KernelSymbol {
  std::string name;    // as in kallsyms
  std::string module;  // "" for vmlinux, "bpf", or the module's name
  uint64_t address = 0;
};

struct KernelModule {
  std::string name;
  uint64_t start = 0;
  uint64_t end = 0;
};

class KernelSymbols {
 public:
  static constexpr size_t kTextMax = size_t{256} << 20;
  static constexpr size_t kSymbolsMax = 4'000'000;
  static constexpr uint64_t kLastReach = 4096;  // how far a symbol goes if nothing ends it
  static constexpr uint64_t kBpfReach = 128 << 10;

  KernelSymbols() = default;
  // Both texts as the kernel prints them.
  static KernelSymbols parse(std::string_view kallsyms, std::string_view modules);

  std::optional<KernelSymbol> find(uint64_t address) const;
  // The module whose memory holds the address, by /proc/modules; nullptr if none.
  const KernelModule* module_of(uint64_t address) const;
  // Every address was zero: the kernel hides them.
  bool hidden() const { return hidden_; }
  size_t size() const { return entries_.size(); }
  // Inside vmlinux, whose symbols do not change while it runs.
  bool in_vmlinux(uint64_t address) const { return address >= text_start_ && address < text_end_; }

  // A BPF program was loaded. It takes the place of those that it overlaps.
  void add_bpf(uint64_t address, uint32_t bytes, std::string_view name);

 private:
  struct Entry {
    uint64_t address;
    uint64_t end;
    uint32_t name;    // into names_
    uint16_t module;  // into module_names_
  };
  void add_line(std::string_view line);
  void read_modules(std::string_view text);
  void set_ends();
  uint16_t module_index(std::string_view name);
  bool is_bpf(const Entry& entry) const { return module_names_[entry.module] == "bpf"; }

  std::vector<Entry> entries_;         // sorted by address
  std::vector<KernelModule> modules_;  // sorted by start
  std::vector<std::string> module_names_{""};
  std::string names_;
  uint64_t text_start_ = 0;
  uint64_t text_end_ = UINT64_MAX;
  bool hidden_ = false;
};

// "bpf_prog:NAME" for "bpf_prog_TAG_NAME"; other names unchanged.
std::string kernel_function_name(std::string_view symbol);

}  // namespace dwell::symbolize
